"""Dead letters: one per death, whoever brings it, with everything in it, and a way back."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import Database
from nightdesk.desk import dead_letters, queue
from nightdesk.desk.dead_letters import discard, requeue, route_failed, route_run, sweep_failed
from nightdesk.desk.failure_record import record_failure
from nightdesk.desk.generation import generate, prepare
from nightdesk.desk.policy import Verdict
from nightdesk.desk.prompting import load_prompt
from nightdesk.desk.queue import Claim, Pin
from nightdesk.errors import Fenced, InputError, Permanent
from nightdesk.llm.metered import MeteredClient
from nightdesk.states import JobState, Phase
from tests.integration.desk_fixtures import (
    ScriptedModel,
    SeededWorld,
    add_articles,
    claim_one,
    reply,
    scalar,
)

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


def test_a_job_whose_input_cannot_be_kept_gets_a_letter_without_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(database, "a", "b", "c")
    first, second, third = (fail(database) for _ in range(3))
    real = dead_letters.job_input

    def broken(session: Session, job_id: int) -> dict[str, Any]:
        if job_id == second.job_id:
            session.connection().execute(text("SELECT 1 / 0"))
        return real(session, job_id)

    monkeypatch.setattr(dead_letters, "job_input", broken)
    with database.transaction() as session:
        assert route_run(session, "run-a", "event") == 3
    given = {letter.job_id: letter for letter in letters(database)}
    assert "division by zero" in given[second.job_id].input["unreadable"]
    assert given[second.job_id].message == "it cannot be"
    assert len(given[second.job_id].attempts) == 1
    assert all(given[one.job_id].input["article"]["topic"] for one in (first, third))


@pytest.mark.parametrize("bring", ["sweep", "run"])
def test_one_job_that_cannot_be_routed_at_all_stays_failed_and_does_not_stop_the_others(
    database: Database, bring: str
) -> None:
    add_articles(database, "a", "b", "c")
    jobs = [fail(database).job_id for _ in range(3)]
    with database.transaction() as session:
        session.connection().execute(
            text(f"ALTER TABLE nightdesk.dead_letters ADD CHECK (job_id <> {jobs[1]})")
        )
    with database.transaction() as session:
        routed = (
            sweep_failed(session, 0, "sweep") if bring == "sweep" else route_run(session, "run-a", "event")
        )
    assert routed == 2
    states = [scalar(database, "SELECT state FROM nightdesk.jobs WHERE id = :id", id=one) for one in jobs]
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


@pytest.mark.parametrize(
    ("name", "limit"),
    [("max_usd", Decimal("NaN")), ("max_usd", Decimal("inf")), ("max_usd", Decimal(0)), ("max_tokens", -1)],
)
def test_a_limit_that_is_none_requeues_nothing(database: Database, name: str, limit: Any) -> None:
    add_articles(database, "a")
    claim = fail(database)
    with database.transaction() as session:
        route_failed(session, [claim.job_id], "event")
    more: dict[str, Any] = {name: limit}
    with pytest.raises(InputError, match="number above 0"), database.transaction() as session:
        requeue(session, letter_of(database), who="ana", why="worth it", **more)
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == "dead"


def test_who_and_why_are_stored_as_text_and_are_not_empty_once_they_are(database: Database) -> None:
    add_articles(database, "a")
    claim = fail(database)
    with database.transaction() as session:
        route_failed(session, [claim.job_id], "event")
    letter = letter_of(database)
    with pytest.raises(InputError, match="say who decides"), database.transaction() as session:
        discard(session, letter, who="ana", why="\x00 ")
    with database.transaction() as session:
        discard(session, letter, who="ana\x00", why=" \ud800 ")
    assert letters(database)[0].resolved_by == "ana"


BRIEF = '{"angle": "a", "audience": "b", "questions": ["c?", "d?"], "facts": [], "terms": [], "notes": ""}'


async def test_a_job_whose_answers_were_refused_really_asks_again_once_it_is_requeued(
    database: Database,
) -> None:
    add_articles(database, "a")
    answers = iter(["no JSON", "none again", BRIEF])
    model = ScriptedModel(lambda _: reply(next(answers)))
    pin = Pin("anthropic", "claude-sonnet-5-5", load_prompt(Phase.RESEARCH).version)
    world = SeededWorld(2)
    client = MeteredClient(database, {"anthropic": model}, world)

    def take() -> Claim:
        with database.transaction() as session:
            (claim,) = queue.claim(session, run="r", phase=Phase.RESEARCH, limit=1, lease_s=900, pin=pin)
        return claim

    first = take()
    with pytest.raises(Permanent) as refused:
        await generate(database, client, world, prepare(database, first, 30))
    with database.transaction() as session:
        queue.give_up(session, first, FAILED, record_failure(refused.value))
        route_failed(session, [first.job_id], "event")
        requeue(session, letter_of_session(session), who="ana", why="the model was mended")
    assert len(model.requests) == 2
    output = await generate(database, client, world, prepare(database, take(), 30))
    assert len(model.requests) == 3
    assert output.model_dump()["angle"] == "a"


def letters(database: Database) -> list[Any]:
    with database.reading() as session:
        return list(session.connection().execute(text("SELECT * FROM nightdesk.dead_letters ORDER BY id")))


def letter_of_session(session: Session) -> int:
    return int(session.connection().execute(text("SELECT max(id) FROM nightdesk.dead_letters")).scalar_one())
