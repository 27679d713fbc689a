"""A connection breaks right after a commit: nobody knows whether it was done, and doing it again does no harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import Database, transact
from nightdesk.desk import queue
from nightdesk.desk.dead_letters import route_failed
from nightdesk.desk.failure_record import record_failure
from nightdesk.desk.policy import Verdict
from nightdesk.desk.queue import Claim
from nightdesk.errors import Fenced, Permanent
from nightdesk.states import JobState, Phase
from tests.integration.desk_fixtures import PIN, SeededWorld, add_articles, claim_one, scalar


class LosesTheAnswer(Database):
    """The first transaction commits, and its connection is cut before that can be told."""

    lost = 0

    def transaction(self) -> Any:
        inner = super().transaction()
        if self.lost:
            return inner
        self.lost += 1
        return _Cut(inner, self)


class _Cut:
    def __init__(self, inner: Any, database: Database) -> None:
        self._inner, self._database = inner, database

    def __enter__(self) -> Session:
        self._session: Session = self._inner.__enter__()
        self._pid = self._session.connection().execute(text("SELECT pg_backend_pid()")).scalar()
        return self._session

    def __exit__(self, *args: Any) -> None:
        self._inner.__exit__(*args)
        with Database.reading(self._database) as other:
            other.connection().execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": self._pid})
        # What the client sees of it: the next thing said on that connection fails.
        with Database.reading(self._database) as cut:
            cut.connection().execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


async def twice(database: Database, work: Callable[[Session], Any]) -> Any:
    flaky = LosesTheAnswer(database.url)
    try:
        return await transact(flaky, SeededWorld(), work)
    finally:
        assert flaky.lost == 1
        flaky.dispose()


async def test_a_finish_whose_answer_was_lost_is_done_once(database: Database) -> None:
    add_articles(database, "a")
    claim = claim_one(database)
    with pytest.raises(Fenced):
        await twice(database, lambda session: queue.finish(session, claim))
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == "done"
    assert scalar(database, "SELECT count(*) FROM nightdesk.job_attempts WHERE outcome = 'done'") == 1


async def test_a_claim_whose_answer_was_lost_is_handed_back_by_its_own_run(database: Database) -> None:
    add_articles(database, "a", "b")

    def take(session: Session) -> list[Claim]:
        queue.hand_back_run(session, "run-a")
        return queue.claim(session, run="run-a", phase=Phase.RESEARCH, limit=1, lease_s=900, pin=PIN)

    (claim,) = await twice(database, take)
    assert claim.claim_no == 2, "the same job again: it was handed back first"
    assert claim.attempts == 1, "and that cost no attempt"
    assert scalar(database, "SELECT count(*) FROM nightdesk.jobs WHERE state = 'leased'") == 1


async def test_a_dead_letter_whose_answer_was_lost_is_written_once(database: Database) -> None:
    add_articles(database, "a")
    claim = claim_one(database)
    with database.transaction() as session:
        queue.give_up(session, claim, Verdict(JobState.FAILED), record_failure(Permanent("no")))
    assert await twice(database, lambda session: route_failed(session, [claim.job_id], "event")) == 0
    assert scalar(database, "SELECT count(*) FROM nightdesk.dead_letters") == 1
