"""A job that kills its process takes nobody with it to the dead letters."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from nightdesk.db import Database
from nightdesk.desk import queue, runner
from nightdesk.desk.dead_letters import route_run, sweep_failed
from nightdesk.desk.dead_runs import take_back_run
from nightdesk.desk.desk import Desk
from nightdesk.desk.queue import Claim
from nightdesk.llm.metered import MeteredClient
from nightdesk.llm.providers import ModelChoice
from nightdesk.research import FetchPolicy, SourceReader
from nightdesk.states import Phase
from tests.integration.desk_fixtures import LIMITS, PIN, SeededWorld, add_articles, scalar


def claim(database: Database, run: str, *, suspects: bool, limit: int = 3) -> list[Claim]:
    with database.transaction() as session:
        return queue.claim(
            session, run=run, phase=Phase.RESEARCH, limit=limit, lease_s=900, pin=PIN, suspects=suspects
        )


def dies(database: Database, run: str) -> None:
    with database.transaction() as session:
        take_back_run(session, run)


def test_after_two_deaths_a_job_is_claimed_only_as_a_suspect(database: Database) -> None:
    add_articles(database, "a", "b")
    for number in range(2):
        assert len(claim(database, f"run-{number}", suspects=False)) == 2
        dies(database, f"run-{number}")
    assert claim(database, "run-2", suspects=False) == []
    assert len(claim(database, "run-2", suspects=True, limit=1)) == 1


def test_the_neighbours_of_a_job_that_kills_its_process_are_done(database: Database) -> None:
    add_articles(database, "poison", "good", "better", priority=5)
    poison = scalar(database, "SELECT id FROM nightdesk.jobs ORDER BY id LIMIT 1")
    done: set[int] = set()
    for number in range(12):
        run = f"run-{number}"
        for held in (claim(database, run, suspects=True, limit=1), claim(database, run, suspects=False)):
            if any(one.job_id == poison for one in held):
                dies(database, run)
                break
            for one in held:
                with database.transaction() as session:
                    queue.finish(session, one)
                done.add(one.job_id)
    with database.transaction() as session:
        sweep_failed(session, 0, layer="sweep")
    assert len(done) == 2
    assert scalar(database, "SELECT state FROM nightdesk.jobs WHERE id = :id", id=poison) == "dead"
    letter = scalar(database, "SELECT message FROM nightdesk.dead_letters")
    assert letter == "its run was killed (4 times so far)"
    assert scalar(database, "SELECT jsonb_array_length(attempts) FROM nightdesk.dead_letters") == 4


def test_a_run_that_lives_on_after_all_changes_nothing(database: Database) -> None:
    add_articles(database, "a")
    (held,) = claim(database, "run-0", suspects=False)
    dies(database, "run-0")
    (again,) = claim(database, "run-1", suspects=False)
    assert again.claim_no == held.claim_no + 1
    dies(database, "run-0")
    assert scalar(database, "SELECT locked_by FROM nightdesk.jobs") == "run-1"
    with database.transaction() as session:
        assert route_run(session, "run-0", "event") == 0


async def test_the_runner_works_on_a_suspect_alone_and_on_the_others_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(database, *(f"topic {n}" for n in range(8)))
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET deaths = 2 WHERE id % 4 = 0"))
    at_work: set[int] = set()
    seen: list[tuple[bool, int]] = []

    async def work(desk: Desk, held: Claim) -> None:
        at_work.add(held.job_id)
        await asyncio.sleep(0.05)
        seen.append((held.job_id % 4 == 0, len(at_work)))
        await desk.transact(lambda session: queue.finish(session, held))
        at_work.discard(held.job_id)

    monkeypatch.setattr(runner, "work", work)
    reader = SourceReader(FetchPolicy(user_agent="test"))
    world = SeededWorld(1)
    desk = Desk(
        database=database,
        world=world,
        client=MeteredClient(database, {}, world),
        reader=reader,
        sites={},
        models=ModelChoice("anthropic", "claude-sonnet-5-5", "claude-haiku-5-5"),
        limits=LIMITS,
        lease_s=900,
        deadline_s=30,
    )
    await runner.Runner(desk, "run-a", places=3).run_until_idle()
    await reader.aclose()
    assert [count for suspect, count in seen if suspect] == [1, 1]
    assert len(seen) == 8
    assert max(count for suspect, count in seen if not suspect) > 1
