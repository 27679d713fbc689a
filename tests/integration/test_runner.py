"""The synchronous runner: what passes changes nothing, and nothing it holds is forgotten."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from nightdesk.db import Database, now
from nightdesk.desk import lanes, queue, site_lease
from nightdesk.desk.desk import Desk
from nightdesk.desk.failure_record import FailureRecord
from nightdesk.desk.lease_keeper import LeaseKeeper
from nightdesk.desk.policy import Verdict
from nightdesk.desk.queue import Pin
from nightdesk.desk.runner import Runner
from nightdesk.desk.runs import registered_run, take_back_dead_runs
from nightdesk.desk.site_lease import SiteBusy
from nightdesk.errors import Blocked, Fenced, Lane, LaneKind, Permanent, Transient
from nightdesk.llm.metered import MeteredClient
from nightdesk.llm.port import Billing, CallFailed, ModelReply, ModelRequest
from nightdesk.llm.providers import ModelChoice
from nightdesk.research import FetchPolicy, SourceReader
from nightdesk.states import JobState, Phase
from tests.integration.desk_fixtures import (
    LIMITS,
    PIN,
    ScriptedModel,
    SeededWorld,
    add_articles,
    claim_one,
    reply,
    scalar,
)
from tests.integration.test_metered import an_ask

BRIEF = '{"angle": "a", "audience": "b", "questions": ["c?", "d?"], "facts": [], "terms": [], "notes": ""}'
ANTHROPIC = Lane(LaneKind.PROVIDER, "anthropic")
MakeDesk = Callable[[ScriptedModel], Desk]


@pytest.fixture
async def make_desk(database: Database) -> AsyncIterator[MakeDesk]:
    reader = SourceReader(FetchPolicy(user_agent="test"))

    def make(model: ScriptedModel, **changes: object) -> Desk:
        world = SeededWorld(5)
        desk = Desk(
            database=database,
            world=world,
            client=MeteredClient(database, {"anthropic": model}, world),
            reader=reader,
            sites={},
            models=ModelChoice("anthropic", "claude-sonnet-5-5", "claude-haiku-5-5"),
            limits=LIMITS,
            lease_s=900,
            deadline_s=30,
        )
        return dataclasses.replace(desk, **changes)  # type: ignore[arg-type]

    yield make
    await reader.aclose()


def states(database: Database) -> dict[str, int]:
    with database.reading() as session:
        rows = session.connection().execute(
            text("SELECT phase || ' ' || state AS key, count(*) AS n FROM nightdesk.jobs GROUP BY 1")
        )
        return {row.key: row.n for row in rows}


def fails(error: Exception, billing: Billing = Billing.NOTHING) -> ScriptedModel:
    return ScriptedModel(lambda _: CallFailed(error, billing))  # type: ignore[arg-type]


async def test_a_provider_that_is_down_costs_one_attempt_of_four_requests_and_then_half_an_hour(
    database: Database, make_desk: MakeDesk
) -> None:
    add_articles(database, "one")
    model = fails(Transient("503", lane=ANTHROPIC))
    await Runner(make_desk(model), "run-a").run_until_idle()
    assert len(model.requests) == 4
    assert states(database) == {"research waiting": 1}


async def test_a_job_that_always_fails_in_passing_ends_dead_after_three_attempts_also_if_its_cost_is_unknown(
    database: Database, make_desk: MakeDesk
) -> None:
    add_articles(database, "one", sources=())
    model = fails(Transient("500", lane=ANTHROPIC), Billing.UNKNOWN)
    desk = make_desk(model)
    for _ in range(3):
        await Runner(desk, "run-a").run_until_idle()
        with database.reading() as session:
            database.simulated_now = now(session) + timedelta(hours=1)
    assert states(database) == {"research dead": 1}
    assert scalar(database, "SELECT count(*) FROM nightdesk.llm_calls WHERE state = 'unknown'") == 12


async def test_a_job_held_up_by_unknown_cost_alone_does_not_wait_for_ever(
    database: Database, make_desk: MakeDesk
) -> None:
    add_articles(database, "one")
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_usd = 0.01"))
    model = fails(Transient("500", lane=ANTHROPIC), Billing.UNKNOWN)
    desk = make_desk(model)
    for _ in range(3):
        await Runner(desk, "run-a").run_until_idle()
        with database.reading() as session:
            database.simulated_now = now(session) + timedelta(hours=1)
    assert states(database) == {"research dead": 1}
    assert scalar(database, "SELECT error_class FROM nightdesk.dead_letters") == "over_job_cap"


async def test_a_database_that_breaks_off_in_the_middle_costs_nothing(
    database: Database, make_desk: MakeDesk
) -> None:
    """Every connection is cut while the model answers, again and again."""
    add_articles(database, "one")

    def answer(_request: ModelRequest) -> ModelReply:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        return reply(BRIEF)

    model = ScriptedModel(answer)
    await Runner(make_desk(model), "run-a").run_until_idle()
    assert scalar(database, "SELECT state FROM nightdesk.jobs WHERE phase = 'research'") == "done"
    assert scalar(database, "SELECT count(*) FROM nightdesk.llm_calls WHERE phase = 'research'") == 1


async def test_an_answer_that_was_paid_for_waits_for_the_database(
    database: Database, make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = iter([True, True, True, False])
    transaction = database.transaction

    def sometimes() -> object:
        if next(broken, False):
            raise OperationalError("SELECT", {}, Exception("connection refused"))
        return transaction()

    model = ScriptedModel(lambda _: reply("kept"))
    client = make_desk(model).client
    ask = an_ask(database)
    original = client._open

    def open_then_break(asked: object) -> object:
        result = original(asked)  # type: ignore[arg-type]
        monkeypatch.setattr(database, "transaction", sometimes)
        return result

    monkeypatch.setattr(client, "_open", open_then_break)
    answer = await client.ask(ask)
    assert answer.text == "kept"
    assert scalar(database, "SELECT state FROM nightdesk.llm_calls") == "answered"


async def test_a_job_that_was_begun_with_another_provider_waits_and_books_nothing(
    database: Database, make_desk: MakeDesk
) -> None:
    add_articles(database, "one")
    with database.transaction() as session:
        (claim,) = queue.claim(
            session, run="r", phase=Phase.RESEARCH, limit=1, lease_s=60, pin=Pin("openai", "gpt-6-luna", None)
        )
        queue.give_up(session, claim, Verdict(JobState.READY, counted=False), FailureRecord("stopped"))
    model = ScriptedModel(lambda _: reply(BRIEF))
    await Runner(make_desk(model), "run-a").run_until_idle()
    assert states(database) == {"research waiting": 1}
    assert "openai" in str(scalar(database, "SELECT reason FROM nightdesk.jobs"))
    assert scalar(database, "SELECT attempts FROM nightdesk.jobs") == 0
    assert scalar(database, "SELECT count(*) FROM nightdesk.llm_calls") == 0


async def test_a_blocked_provider_is_asked_once_and_its_other_jobs_are_not_even_claimed(
    database: Database, make_desk: MakeDesk
) -> None:
    add_articles(database, *(f"topic {n}" for n in range(20)))
    model = fails(Blocked("401", lane=ANTHROPIC))
    await Runner(make_desk(model), "run-a", places=1).run_until_idle()
    assert len(model.requests) == 1
    assert states(database) == {"research waiting": 1, "research ready": 19}
    assert scalar(database, "SELECT count(*) FROM nightdesk.job_attempts") == 1


async def test_one_jobs_failure_never_stops_another(database: Database, make_desk: MakeDesk) -> None:
    add_articles(database, "poison", "fine")

    def answer(request: ModelRequest) -> ModelReply | CallFailed:
        if "topic: poison" in request.user:
            return CallFailed(Permanent("400"), Billing.NOTHING)
        return reply(BRIEF)

    await Runner(make_desk(ScriptedModel(answer)), "run-a").run_until_idle()
    counts = states(database)
    assert (counts["research dead"], counts["research done"]) == (1, 1)


async def test_an_unplanned_error_ends_dead_with_its_stack_and_its_call_is_not_left_open(
    database: Database, make_desk: MakeDesk
) -> None:
    add_articles(database, "one")

    def answer(_request: ModelRequest) -> ModelReply:
        raise RecursionError("a bug")

    await Runner(make_desk(ScriptedModel(answer)), "run-a").run_until_idle()
    assert states(database) == {"research dead": 1}
    assert "a bug" in str(scalar(database, "SELECT stack FROM nightdesk.dead_letters"))
    assert scalar(database, "SELECT state FROM nightdesk.llm_calls") == "unknown"


def test_a_run_that_ends_gives_back_all_that_it_holds(database: Database, tmp_path: Path) -> None:
    add_articles(database, "one", "two")
    world = SeededWorld(3)
    with registered_run(tmp_path, database, world.new_id()) as run:
        claim_one(database, run)
        with database.transaction() as session:
            assert site_lease.take(session, "garden", f"{run}/1")
    assert states(database) == {"research ready": 2}
    assert scalar(database, "SELECT max(attempts) FROM nightdesk.jobs") == 0
    assert scalar(database, "SELECT locked_by FROM nightdesk.site_leases") is None
    assert list(tmp_path.iterdir()) == []


async def test_a_claim_that_commits_while_its_run_is_cancelled_is_given_back(
    database: Database, make_desk: MakeDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(database, "one", "two")
    claiming = threading.Event()
    original = queue.claim

    def slow_claim(*args: object, **kwargs: object) -> object:
        claims = original(*args, **kwargs)  # type: ignore[arg-type]
        if claims:
            claiming.set()
            time.sleep(0.3)
        return claims

    monkeypatch.setattr(queue, "claim", slow_claim)
    desk = make_desk(ScriptedModel(lambda _: reply(BRIEF)))

    async def run() -> None:
        with registered_run(tmp_path, database, SeededWorld(9).new_id()) as name:
            await Runner(desk, name).run_until_idle()

    task = asyncio.create_task(run())
    await asyncio.to_thread(claiming.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.get_running_loop().shutdown_default_executor()
    assert states(database) == {"research ready": 2}


def test_a_living_run_is_not_taken_for_a_dead_one(database: Database, tmp_path: Path) -> None:
    add_articles(database, "one")
    with registered_run(tmp_path, database, SeededWorld(3).new_id()) as run:
        claim_one(database, run)
        assert take_back_dead_runs(tmp_path, database) == []
        assert states(database) == {"research leased": 1}


def test_what_a_dead_run_held_is_taken_back_at_once(database: Database, tmp_path: Path) -> None:
    add_articles(database, "one")
    claim_one(database, "run-dead")
    (tmp_path / "run-dead.lock").touch()
    assert take_back_dead_runs(tmp_path, database) == ["run-dead"]
    assert states(database) == {"research ready": 1}
    assert scalar(database, "SELECT attempts FROM nightdesk.jobs") == 0


def test_a_job_that_kills_its_runs_is_given_up_after_the_first_and_three_more(
    database: Database, tmp_path: Path
) -> None:
    add_articles(database, "poison")
    for number in range(4):
        with database.transaction() as session:
            for suspects in (False, True):
                queue.claim(
                    session,
                    run=f"run-{number}",
                    phase=Phase.RESEARCH,
                    limit=1,
                    lease_s=900,
                    pin=PIN,
                    suspects=suspects,
                )
        (tmp_path / f"run-{number}.lock").touch()
        take_back_dead_runs(tmp_path, database)
    assert states(database) == {"research dead": 1}
    assert scalar(database, "SELECT error_class FROM nightdesk.dead_letters") == "run_killed"


def test_a_job_that_a_run_holds_but_does_not_work_on_comes_back(database: Database) -> None:
    add_articles(database, "lost", "at work")
    first, second = claim_one(database), claim_one(database)
    with database.transaction() as session:
        assert queue.hand_back_run(session, "run-a", [second.job_id]) == 1
    assert scalar(database, "SELECT state FROM nightdesk.jobs WHERE id = :id", id=first.job_id) == "ready"


def test_a_publisher_whose_site_was_taken_may_not_go_on(database: Database) -> None:
    with database.transaction() as session:
        mine = site_lease.take(session, "garden", "run-a/1")
        assert mine is not None
        assert site_lease.take(session, "garden", "run-b/2") is None
        moment = now(session)
    database.simulated_now = moment + timedelta(seconds=site_lease.LEASE_S + 1)
    with database.transaction() as session:
        assert site_lease.take(session, "garden", "run-b/2") is not None
    with pytest.raises(SiteBusy), database.transaction() as session:
        site_lease.renew(session, mine)


def test_a_pause_is_prolonged_never_shortened_and_ends_at_its_time(database: Database) -> None:
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "429", 600)
        lanes.pause(session, ANTHROPIC, "401", 60)
        assert lanes.closed(session) == {ANTHROPIC}
        moment = now(session)
    database.simulated_now = moment + timedelta(seconds=300)
    with database.transaction() as session:
        assert lanes.end_due(session) == 0
    database.simulated_now = moment + timedelta(seconds=601)
    with database.transaction() as session:
        assert lanes.end_due(session) == 1
        assert lanes.closed(session) == set()


async def test_a_renewal_of_a_later_claim_goes_on_when_the_earlier_one_ends(database: Database) -> None:
    add_articles(database, "one")
    keeper = LeaseKeeper(database, 900)
    first = claim_one(database)
    with keeper.keeping(first):
        with database.transaction() as session:
            queue.hand_back_run(session, "run-a")
        second = claim_one(database)
        inner = keeper.keeping(second)
        inner.__enter__()
    assert list(keeper._kept) == [(second.job_id, second.claim_no)]
    inner.__exit__(None, None, None)


def test_the_default_limits_leave_room_for_every_retry_of_a_long_source(database: Database) -> None:
    from nightdesk.config import JobSettings
    from nightdesk.spend.estimate import input_estimate_tokens

    per_call = input_estimate_tokens("a" * 60_000) + 6_000
    assert JobSettings().max_tokens >= 12 * per_call
    assert JobSettings().max_usd == Decimal(2)
    assert PIN.provider == "anthropic"


def test_a_run_that_rescues_and_one_that_closes_a_lane_do_not_wait_for_each_other(
    database: Database,
) -> None:
    """Ending pauses never waits for a lock, so that even the other order of locks cannot deadlock."""
    add_articles(database, *(f"topic {n}" for n in range(6)))
    stop = time.monotonic() + 3
    failures: list[BaseException] = []

    def rescuing() -> None:
        while time.monotonic() < stop:
            with database.transaction() as session:
                queue.rescue_expired(session)
                lanes.end_due(session)
                queue.wake_due(session)

    def closing() -> None:
        while time.monotonic() < stop:
            with database.transaction() as session:
                claims = queue.claim(session, run="r", phase=Phase.RESEARCH, limit=1, lease_s=0.001, pin=PIN)
            for claim in claims:
                with suppress(Fenced), database.transaction() as session:
                    verdict = Verdict(JobState.WAITING, wait_s=0.001, counted=False, pause=ANTHROPIC)
                    lanes.pause(session, ANTHROPIC, "429", 0.001)
                    queue.give_up(session, claim, verdict, FailureRecord("429"))

    def noting(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=noting, args=(work,)) for work in (rescuing, rescuing, closing, closing)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_list_of_articles_finds_each_ones_calls_by_an_index(database: Database) -> None:
    with database.reading() as session:
        session.connection().execute(text("SET LOCAL enable_seqscan = off"))
        plan = "\n".join(
            session.connection().execute(
                text("EXPLAIN SELECT sum(max_output_tokens) FROM nightdesk.llm_calls WHERE article_id = :id"),
                {"id": SeededWorld(1).new_id()},
            ).scalars()
        )  # fmt: skip
    assert "ix_llm_calls_article_id" in plan
