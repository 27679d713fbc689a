"""A lane that is down is left alone, tried by one job at a time, and costs no job its attempts."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from nightdesk.cli.demonstration import demo_settings
from nightdesk.compose import open_desk, open_sites
from nightdesk.db import Database, now
from nightdesk.desk import lanes, queue
from nightdesk.desk.attempt import attend
from nightdesk.desk.desk import Desk
from nightdesk.desk.lanes import Paused
from nightdesk.desk.policy import (
    BREAKER_LONGEST_PAUSE_S,
    BREAKER_PAUSE_S,
    BREAKER_WINDOW_S,
    PROBE_S,
)
from nightdesk.desk.queue import Claim
from nightdesk.desk.runner import Runner
from nightdesk.errors import NeedsPerson, Permanent, Transient
from nightdesk.llm.port import Billing, CallFailed, ModelReply, ModelRequest
from nightdesk.sandbox import SandboxOptions, SandboxProcess, read_journal
from nightdesk.states import JobState
from tests.integration.desk_fixtures import (
    add_articles,
    claim_one,
    reply,
    scalar,
)
from tests.integration.test_lanes import (
    ANTHROPIC,
    CLOSED,
    DOWN,
    GARDEN,
    OPENED,
    Bench,
    PassingTime,
    ask_of,
    opened_bench,
)


@pytest.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    async with opened_bench(database) as made:
        yield made


# ── opening ──────────────────────────────────────────────────────────────────────────────────────


async def test_when_two_jobs_fail_in_a_row_the_lane_is_closed_and_the_second_loses_no_attempt(
    bench: Bench,
) -> None:
    first, second = await bench.open_breaker()
    assert (bench.job(first, "attempts"), bench.job(second, "attempts")) == (1, 0)
    assert bench.job(second, "state") == "waiting"
    assert bench.due_in_s(second) == BREAKER_PAUSE_S
    assert bench.told() == [OPENED]


async def test_one_job_that_fails_again_and_again_closes_nothing_and_ends_as_the_table_says(
    bench: Bench,
) -> None:
    (claim,) = bench.claims(1)
    for attempt in range(1, 4):
        state = await bench.fails(claim)
        assert bench.job(claim, "attempts") == attempt
        bench.go(60)
        if state is JobState.WAITING:
            with bench.database.transaction() as session:
                queue.wake_article(session, claim.article_id)
            claim = claim_one(bench.database)
    assert state is JobState.FAILED
    assert (bench.closed(), bench.told()) == (set(), [])


async def test_a_success_between_forgets_the_failures_before_it(bench: Bench) -> None:
    first, second, third, fourth = bench.claims(4)
    await bench.fails(first)
    await bench.works(second)
    await bench.fails(third)
    assert bench.closed() == set()
    await bench.fails(fourth)
    assert bench.closed() == {ANTHROPIC}


async def test_a_failure_older_than_the_window_does_not_count(bench: Bench) -> None:
    first, second, third = bench.claims(3)
    await bench.fails(first)
    bench.go(BREAKER_WINDOW_S + 1)
    await bench.fails(second)
    assert bench.closed() == set()
    bench.go(BREAKER_WINDOW_S - 1)
    await bench.fails(third)
    assert bench.closed() == {ANTHROPIC}


async def test_failures_that_name_no_lane_or_another_one_do_not_close_this_one(bench: Bench) -> None:
    first, second, third, fourth = bench.claims(4)
    await bench.fails(first, Transient("the database does not answer"))
    await bench.fails(second, Transient("the database does not answer"))
    await bench.fails(third)
    await bench.fails(fourth, Transient("the page is not live", lane=GARDEN))
    assert bench.closed() == set()


async def test_what_was_in_flight_when_the_lane_closed_loses_no_attempt_and_opens_nothing_twice(
    bench: Bench,
) -> None:
    late, later, *others = bench.claims(4)

    async def fail_late(_desk: Desk, _claim: Claim) -> None:
        for claim in others:
            await bench.fails(claim)
        raise DOWN

    await attend(bench.desk, late, bench.keeper, fail_late)
    assert (bench.job(late, "state"), bench.job(late, "attempts")) == ("waiting", 0)
    assert bench.due_in_s(late) == BREAKER_PAUSE_S
    # It was asked before the lane closed: an answer now proves nothing of the lane.
    await bench.desk.client.ask(ask_of(later))
    with bench.database.transaction() as session:
        queue.finish(session, later)
        lanes.ended(session, later)
    assert bench.closed() == {ANTHROPIC}
    assert bench.told() == [OPENED]


def test_two_jobs_that_fail_at_the_same_instant_open_it_once(bench: Bench) -> None:
    for _ in range(5):
        claims = bench.claims(2)
        answers = at_once(
            lambda claim: fail_in_a_transaction(bench.database, claim), [(claim,) for claim in claims]
        )
        assert sorted(answers, key=str) == [BREAKER_PAUSE_S, None]
        assert bench.told() == [OPENED]
        with bench.database.transaction() as session:
            assert lanes.reopen(session, ANTHROPIC)
            lanes.mark_told(session, lanes.transitions_to_tell(session))


def fail_in_a_transaction(database: Database, claim: Claim) -> float | None:
    with database.transaction() as session:
        queue.renew(session, claim, 900)
        waited_s = lanes.failed(session, claim, ANTHROPIC, "503")
        time.sleep(0.02)
        return waited_s


# ── trying ───────────────────────────────────────────────────────────────────────────────────────


async def test_while_it_is_closed_no_job_gets_in_and_none_loses_an_attempt(bench: Bench) -> None:
    await bench.open_breaker()
    (claim,) = bench.claims(1)
    bench.go(BREAKER_PAUSE_S - 1)
    assert await bench.works(claim) is JobState.WAITING
    assert bench.model.requests == []
    assert bench.job(claim, "attempts") == 0


def test_of_workers_that_come_at_the_same_instant_one_tries_it(bench: Bench) -> None:
    other = Database(bench.database.url)
    try:
        for _ in range(5):
            first, second, third, fourth = bench.claims(4)
            for claim in (first, second):
                fail_in_a_transaction(bench.database, claim)
            bench.go(BREAKER_PAUSE_S + 1)
            other.simulated_now = bench.database.simulated_now
            answers = at_once(admit_in_a_transaction, [(bench.database, third), (other, fourth)])
            assert sorted(answer is None for answer in answers) == [False, True]
            refused = next(answer for answer in answers if answer is not None)
            assert 0 < refused.left_s <= PROBE_S
            with bench.database.transaction() as session:
                lanes.reopen(session, ANTHROPIC)
    finally:
        other.dispose()


def admit_in_a_transaction(database: Database, claim: Claim) -> Paused | None:
    with database.transaction() as session:
        answer = lanes.enter(session, claim)
        time.sleep(0.02)
        return answer


async def test_the_job_that_gets_through_opens_the_lane_for_all(bench: Bench) -> None:
    await bench.open_breaker()
    probe, other, third = bench.claims(3)
    bench.go(BREAKER_PAUSE_S)
    during: list[object] = []

    async def try_it(desk: Desk, claim: Claim) -> None:
        during.append(bench.closed())
        during.append(await bench.works(other))
        await bench.ask_and_finish(desk, claim)

    assert await attend(bench.desk, probe, bench.keeper, try_it) is JobState.DONE
    assert during == [{ANTHROPIC}, JobState.WAITING]
    assert bench.job(other, "attempts") == 0
    assert bench.due_in_s(other) <= PROBE_S
    assert bench.closed() == set()
    assert bench.told() == [OPENED, CLOSED]
    assert await bench.works(third) is JobState.DONE
    assert scalar(bench.database, "SELECT count(*) FROM nightdesk.lane_health") == 0


async def test_each_try_in_vain_doubles_the_pause_up_to_half_an_hour_and_costs_no_attempt(
    bench: Bench,
) -> None:
    await bench.open_breaker()
    pause_s, pauses = BREAKER_PAUSE_S, []
    for _ in range(7):
        bench.go(pause_s)
        assert bench.closed() == set()
        (probe,) = bench.claims(1)
        assert await bench.fails(probe) is JobState.WAITING
        assert bench.job(probe, "attempts") == 0
        with bench.database.reading() as session:
            paused = lanes._state(session, ANTHROPIC, probe)
        pause_s = round(paused.left_s)
        pauses.append(pause_s)
    assert pauses == [240, 480, 960, 1800, 1800, 1800, BREAKER_LONGEST_PAUSE_S]
    assert bench.told() == [OPENED]


async def test_a_job_that_tried_it_in_vain_lets_the_others_go_first(bench: Bench) -> None:
    """It may be what fails: then it must not keep a lane closed that works for everybody else."""
    await bench.open_breaker()
    poison, fine = bench.claims(2)
    bench.go(BREAKER_PAUSE_S)
    await bench.fails(poison)
    bench.go(2 * BREAKER_PAUSE_S)
    assert bench.due_in_s(poison) == 2 * BREAKER_PAUSE_S
    assert await bench.works(fine) is JobState.DONE
    assert bench.told() == [OPENED, CLOSED]


async def test_a_killed_try_is_followed_by_another_once_its_job_is_taken_back(bench: Bench) -> None:
    await bench.open_breaker()
    killed, second = bench.claims(2)
    bench.go(BREAKER_PAUSE_S)
    assert bench.admit(killed) is None
    assert bench.admit(killed) is None, "the answer may have been lost: it may ask again"
    bench.go(PROBE_S + 1)
    assert isinstance(bench.admit(second), Paused), "one at a time, however long it takes"
    assert bench.closed() == {ANTHROPIC}, "nobody is claimed only to be turned away"
    with bench.database.transaction() as session:
        queue.rescue_run(session, killed.run)
    bench.go(PROBE_S + 1)
    assert bench.closed() == set()
    again = claim_one(bench.database, "run-b")
    assert again.claim_no == 2
    assert bench.admit(again) is None


async def test_a_killed_try_does_not_outlive_its_lease(bench: Bench) -> None:
    await bench.open_breaker()
    (killed,) = bench.claims(1)
    bench.go(BREAKER_PAUSE_S)
    assert bench.admit(killed) is None
    bench.go(901)
    (second,) = bench.claims(1)
    assert bench.admit(second) is None


@pytest.mark.parametrize(
    "end", [Permanent("no such prompt"), NeedsPerson("held by the gate"), ValueError("a bug")]
)
async def test_a_try_that_never_got_to_the_lane_leaves_it_to_the_next_job_at_once(
    bench: Bench, end: Exception
) -> None:
    await bench.open_breaker()
    first, second = bench.claims(2)
    bench.go(BREAKER_PAUSE_S)
    await bench.fails(first, end)
    assert bench.closed() == set()
    assert bench.told() == [OPENED]
    assert await bench.works(second) is JobState.DONE
    assert bench.told() == [OPENED, CLOSED]


async def test_an_answer_found_stored_does_not_prove_that_the_provider_works(bench: Bench) -> None:
    await bench.open_breaker()
    (stored,) = bench.claims(1)
    await bench.desk.client.ask(ask_of(stored))
    with bench.database.transaction() as session:
        queue.hand_back_run(session, stored.run)
    bench.go(BREAKER_PAUSE_S)
    again = claim_one(bench.database)
    assert again.job_id == stored.job_id
    assert await bench.works(again) is JobState.DONE
    assert len(bench.model.requests) == 1
    assert bench.told() == [OPENED]


async def test_a_job_that_fails_by_itself_after_an_answer_proves_that_the_provider_works(
    bench: Bench,
) -> None:
    await bench.open_breaker()
    (probe,) = bench.claims(1)
    bench.go(BREAKER_PAUSE_S)

    async def refused(desk: Desk, claim: Claim) -> None:
        await desk.client.ask(ask_of(claim))
        raise NeedsPerson("the model refused")

    await attend(bench.desk, probe, bench.keeper, refused)
    assert bench.job(probe, "state") == "needs_review"
    assert bench.told() == [OPENED, CLOSED]


async def test_a_try_that_is_cancelled_is_given_back_and_the_next_may_try(bench: Bench) -> None:
    await bench.open_breaker()
    probe, second = bench.claims(2)
    bench.go(BREAKER_PAUSE_S)
    started = asyncio.Event()

    async def hang(_desk: Desk, _claim: Claim) -> None:
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(attend(bench.desk, probe, bench.keeper, hang))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (bench.job(probe, "state"), bench.job(probe, "attempts")) == ("ready", 0)
    assert await bench.works(second) is JobState.DONE


# ── cost, and the whole ──────────────────────────────────────────────────────────────────────────


async def test_a_success_writes_nothing_when_there_is_nothing_to_forget(bench: Bench) -> None:
    (claim,) = bench.claims(1)
    await bench.desk.client.ask(ask_of(claim))
    with bench.database.transaction() as session:
        assert lanes.enter(session, claim) is None
        lanes.ended(session, claim)
        written = session.connection().execute(text("SELECT pg_current_xact_id_if_assigned()")).scalar()
    assert written is None


def test_workers_that_open_try_and_close_lanes_at_the_same_time_do_not_wait_for_each_other(
    bench: Bench,
) -> None:
    claims = bench.claims(6)
    bench.database.simulated_now = None
    stop = time.monotonic() + 2
    failures: list[BaseException] = []

    def tangle(number: int) -> None:
        claim = claims[number]
        try:
            while time.monotonic() < stop:
                with bench.database.transaction() as session:
                    lanes.end_due(session)
                    lanes.closed(session)
                with bench.database.transaction() as session:
                    lanes.enter(session, claim)
                with bench.database.transaction() as session:
                    queue.renew(session, claim, 900)
                    lanes.failed(session, claim, ANTHROPIC, "503")
                with bench.database.transaction() as session:
                    session.connection().execute(
                        text(
                            "UPDATE nightdesk.lane_pauses SET until = nightdesk.now() WHERE closed_at IS NULL"
                        )
                    )
                with bench.database.transaction() as session:
                    queue.renew(session, claim, 900)
                    lanes.ended(session, claim)
                with bench.database.transaction() as session:
                    lanes.pause(session, ANTHROPIC, "401", 0.001, unproven=True)
                if number == 0:
                    with bench.database.transaction() as session:
                        lanes.reopen(session, ANTHROPIC)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=tangle, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    changes = bench.told()
    assert changes[::2] == [OPENED] * len(changes[::2]), "what opens closes before it opens again"
    assert changes[1::2] == [CLOSED] * len(changes[1::2])


async def test_a_poisoned_job_does_not_keep_the_provider_closed_for_the_others(bench: Bench) -> None:
    add_articles(bench.database, "poison", priority=9)
    add_articles(bench.database, *(f"fine {number}" for number in range(3)))
    brief = (
        '{"angle": "a", "audience": "b", "questions": ["c?", "d?"], "facts": [], "terms": [], "notes": ""}'
    )
    down = 40

    def answer(request: ModelRequest) -> ModelReply | CallFailed:
        nonlocal down
        down -= 1
        if down > 0 or "topic: poison" in request.user:
            return CallFailed(Transient("503", lane=ANTHROPIC), Billing.NOTHING)
        return reply(brief)

    bench.model._answer = answer
    async with asyncio.timeout(20):
        await Runner(bench.desk, "run-a", places=1, patience_s=7_200).run_until_idle()
    done = "SELECT count(*) FROM nightdesk.jobs WHERE phase = 'research' AND state = 'done'"
    assert scalar(bench.database, done) == 3
    assert bench.told() == [OPENED, CLOSED]


OUTAGE_REQUESTS = 40


@pytest.fixture
def outage(tmp_path: Path) -> Iterator[SandboxProcess]:
    """A provider that answers 503 to its first requests, and then works."""
    plan = tmp_path / "plan.json"
    rule = {"name": "down", "times": OUTAGE_REQUESTS, "action": {"kind": "status", "status": 503}}
    plan.write_text(json.dumps({"rules": [rule]}))
    with SandboxProcess(SandboxOptions(port=0, journal=tmp_path / "journal.jsonl", plan=plan)) as sandbox:
        yield sandbox


async def test_three_jobs_outlast_a_provider_that_is_down_for_hours_and_all_are_published(
    database: Database, outage: SandboxProcess, tmp_path: Path
) -> None:
    settings = demo_settings(tmp_path, "anthropic", outage.base_url, outage.port, site_port=0)
    with database.reading() as session:
        database.simulated_now = started = now(session)
    add_articles(database, "Compost in a small yard", "Compost worms", "Compost in winter", sources=())
    with open_sites(settings) as sites:
        async with open_desk(settings, database, sites, world=PassingTime(database)) as desk:
            await Runner(desk, "run-a", patience_s=7_200).run_until_idle()
    assert database.simulated_now - started > timedelta(hours=1)
    assert scalar(database, "SELECT count(*) FROM nightdesk.dead_letters") == 0
    assert scalar(database, "SELECT count(*) FROM nightdesk.publications WHERE state = 'verified'") == 3
    assert scalar(database, "SELECT max(attempts) FROM nightdesk.jobs") <= 2
    with database.reading() as session:
        changes = [one.change for one in lanes.transitions_to_tell(session)]
    assert changes == [OPENED, CLOSED]
    refused = [entry for entry in read_journal(outage.options.journal) if entry.status == 503]
    assert len(refused) == OUTAGE_REQUESTS


def at_once(call: Callable[..., object], arguments: list[tuple[object, ...]]) -> list[object]:
    """Call it in threads that start together; the answers in the order of the arguments."""
    barrier = threading.Barrier(len(arguments))
    answers: list[object] = [None] * len(arguments)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(10)
            answers[number] = call(*arguments[number])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    return answers
