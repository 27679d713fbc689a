"""Dead letters: one per death, whoever brings it, with everything in it, and a way back."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest
from sqlalchemy import text

from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.dead_letters import discard, requeue, route_failed, route_run, sweep_failed
from nightdesk.desk.failure_record import record_failure
from nightdesk.desk.policy import Verdict
from nightdesk.desk.queue import Claim
from nightdesk.errors import Fenced, InputError, Permanent
from nightdesk.states import JobState
from tests.integration.desk_fixtures import add_articles, claim_one, scalar

FAILED = Verdict(JobState.FAILED)


def fail(database: Database, run: str = "run-a") -> Claim:
    claim = claim_one(database, run)
    with database.transaction() as session:
        queue.give_up(session, claim, FAILED, record_failure(Permanent("it cannot be")))
    return claim


def letter_of(database: Database) -> int:
    return int(scalar(database, "SELECT max(id) FROM nightdesk.dead_letters"))  # type: ignore[call-overload]


def test_two_layers_at_the_same_instant_write_one_letter(database: Database) -> None:
    add_articles(database, "a")
    claim = fail(database)
    barrier, routed = threading.Barrier(2), []

    def bring(layer: str) -> None:
        with database.transaction() as session:
            barrier.wait()
            routed.append(route_failed(session, [claim.job_id], layer))

    threads = [threading.Thread(target=bring, args=(layer,)) for layer in ("automation", "event")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(routed) == [0, 1]
    assert scalar(database, "SELECT count(*) FROM nightdesk.dead_letters") == 1


def test_a_run_brings_its_own_failed_jobs_and_no_others(database: Database) -> None:
    add_articles(database, "a", "b")
    mine, other = fail(database, "run-a"), fail(database, "run-b")
    with database.transaction() as session:
        assert route_run(session, "run-a", "event", run_url="http://127.0.0.1/runs/a") == 1
    assert scalar(database, "SELECT job_id FROM nightdesk.dead_letters") == mine.job_id
    assert scalar(database, "SELECT run_url FROM nightdesk.dead_letters") == "http://127.0.0.1/runs/a"
    assert scalar(database, "SELECT state FROM nightdesk.jobs WHERE id = :id", id=other.job_id) == "failed"


def test_one_job_that_cannot_be_routed_does_not_stop_the_sweep(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(database, "a", "b", "c")
    first, second, third = (fail(database) for _ in range(3))
    from nightdesk.desk import dead_letters

    real = dead_letters.job_input

    def broken(session: object, job_id: int) -> object:
        if job_id == second.job_id:
            raise RuntimeError("this row is poisoned")
        return real(session, job_id)  # type: ignore[arg-type]

    monkeypatch.setattr(dead_letters, "job_input", broken)
    with database.transaction() as session:
        assert sweep_failed(session, 0, "sweep") == 2
    states = [scalar(database, "SELECT state FROM nightdesk.jobs WHERE id = :id", id=one.job_id)
              for one in (first, second, third)]  # fmt: skip
    assert states == ["dead", "failed", "dead"]


def test_the_grace_is_kept(database: Database) -> None:
    add_articles(database, "a")
    fail(database)
    with database.transaction() as session:
        assert sweep_failed(session, 60, "sweep") == 0
        assert sweep_failed(session, 0, "sweep") == 1


def test_a_requeued_job_has_all_its_attempts_and_its_old_holder_is_still_fenced(database: Database) -> None:
    add_articles(database, "a")
    old = fail(database)
    with database.transaction() as session:
        route_failed(session, [old.job_id], "event")
        requeue(session, letter_of_session(session), who="ana", why="the key was renewed")
    new = claim_one(database, "run-b")
    assert (new.claim_no, new.attempts) == (old.claim_no + 1, 1)
    with pytest.raises(Fenced), database.transaction() as session:
        queue.finish(session, old)
    with database.transaction() as session:
        queue.give_up(session, new, FAILED, record_failure(Permanent("again")))
        route_failed(session, [new.job_id], "event")
    assert scalar(database, "SELECT count(*) FROM nightdesk.dead_letters") == 2
    first = scalar(
        database,
        "SELECT resolution || ' by ' || resolved_by || ': ' || resolved_why FROM nightdesk.dead_letters ORDER BY id LIMIT 1",
    )
    assert first == "requeued by ana: the key was renewed"


def test_a_job_that_died_of_its_cap_can_be_given_a_higher_one_and_never_a_lower(database: Database) -> None:
    add_articles(database, "a")
    claim = fail(database)
    with database.transaction() as session:
        route_failed(session, [claim.job_id], "event")
        requeue(
            session, letter_of_session(session), who="ana", why="worth it", max_usd=Decimal(5), max_tokens=1
        )
    assert scalar(database, "SELECT max_usd FROM nightdesk.jobs") == Decimal(5)
    assert scalar(database, "SELECT max_tokens FROM nightdesk.jobs") == 200_000


def test_a_discarded_letter_ends_its_article_and_says_who_and_why(database: Database) -> None:
    add_articles(database, "a")
    claim = fail(database)
    with database.transaction() as session:
        route_failed(session, [claim.job_id], "event")
        discard(session, letter_of_session(session), who="ana", why="no longer wanted")
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == "cancelled"
    assert scalar(database, "SELECT resolved_why FROM nightdesk.dead_letters") == "no longer wanted"


@pytest.mark.parametrize("act", [requeue, discard])
def test_a_letter_is_dealt_with_once_and_never_without_a_reason(database: Database, act: object) -> None:
    assert callable(act)
    add_articles(database, "a")
    claim = fail(database)
    with database.transaction() as session:
        route_failed(session, [claim.job_id], "event")
    letter = letter_of(database)
    for who, why, message in (("ana", " ", "say who decides"), ("", "because", "say who decides")):
        with pytest.raises(InputError, match=message), database.transaction() as session:
            act(session, letter, who=who, why=why)
    with database.transaction() as session:
        act(session, letter, who="ana", why="because")
    with pytest.raises(InputError, match="already"), database.transaction() as session:
        act(session, letter, who="ana", why="because")
    with pytest.raises(InputError, match="there is no dead letter 999"), database.transaction() as session:
        act(session, 999, who="ana", why="because")


def test_a_late_failure_of_an_old_holder_changes_neither_job_nor_letter(database: Database) -> None:
    add_articles(database, "a")
    claim = fail(database)
    with database.transaction() as session:
        route_failed(session, [claim.job_id], "event")
    with pytest.raises(Fenced), database.transaction() as session:
        queue.give_up(
            session, claim, Verdict(JobState.WAITING, wait_s=1), record_failure(RuntimeError("late"))
        )
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == "dead"
    assert scalar(database, "SELECT message FROM nightdesk.dead_letters") == "it cannot be"


def letter_of_session(session: object) -> int:
    return int(session.connection().execute(text("SELECT max(id) FROM nightdesk.dead_letters")).scalar())  # type: ignore[attr-defined]
