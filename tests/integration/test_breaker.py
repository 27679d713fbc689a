"""A lane that is down is left alone, tried by one job at a time, and costs no job its attempts."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.cli.demonstration import demo_settings
from nightdesk.compose import open_desk, open_sites
from nightdesk.db import Database, now
from nightdesk.desk import lanes, queue
from nightdesk.desk.attempt import attend
from nightdesk.desk.desk import Desk
from nightdesk.desk.lanes import Paused
from nightdesk.desk.lease_keeper import LeaseKeeper
from nightdesk.desk.outputs import Outline
from nightdesk.desk.policy import (
    BREAKER_LONGEST_PAUSE_S,
    BREAKER_PAUSE_S,
    BREAKER_WINDOW_S,
    PAUSE_S,
    PROBE_S,
)
from nightdesk.desk.queue import Claim
from nightdesk.desk.runner import Runner
from nightdesk.errors import Blocked, Lane, LaneKind, NeedsPerson, Permanent, ToldToWait, Transient
from nightdesk.llm.metered import Ask, MeteredClient
from nightdesk.llm.port import Billing, CallFailed, ModelReply, ModelRequest
from nightdesk.llm.providers import ModelChoice
from nightdesk.models.lane_pause import LaneChange
from nightdesk.research import FetchPolicy, SourceReader
from nightdesk.sandbox import SandboxOptions, SandboxProcess, read_journal
from nightdesk.states import JobState, Phase
from tests.integration.desk_fixtures import (
    LIMITS,
    ScriptedModel,
    SeededWorld,
    add_articles,
    claim_one,
    reply,
    scalar,
)

ANTHROPIC = Lane(LaneKind.PROVIDER, "anthropic")
GARDEN = Lane(LaneKind.SITE, "garden")
DOWN = Transient("anthropic answered 503", lane=ANTHROPIC)
OPENED, CLOSED = LaneChange.OPENED, LaneChange.CLOSED


class PassingTime(SeededWorld):
    """Sleeping takes no real time, and as much of the database's as it says."""

    def __init__(self, database: Database) -> None:
        super().__init__(5)
        self._database = database

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        assert self._database.simulated_now is not None
        self._database.simulated_now += timedelta(seconds=seconds)
        await asyncio.sleep(0)


class Bench:
    """A desk whose jobs do what a test says, at a time that a test sets."""

    def __init__(self, database: Database, reader: SourceReader, keeper: LeaseKeeper) -> None:
        with database.reading() as session:
            database.simulated_now = now(session)
        self.database, self.keeper = database, keeper
        self.model = ScriptedModel(lambda _: reply())
        self.world = PassingTime(database)
        self.desk = Desk(
            database=database,
            world=self.world,
            client=MeteredClient(database, {"anthropic": self.model}, self.world),
            reader=reader,
            sites={},
            models=ModelChoice("anthropic", "claude-sonnet-5-5", "claude-haiku-5-5"),
            limits=LIMITS,
            lease_s=900,
            deadline_s=30,
        )

    def claims(self, count: int) -> list[Claim]:
        """That many claimed jobs, one of each new article."""
        start = scalar(self.database, "SELECT count(*) FROM nightdesk.articles")
        add_articles(self.database, *(f"topic {start}.{number}" for number in range(count)))
        return [claim_one(self.database) for _ in range(count)]

    async def fails(self, claim: Claim, error: Exception = DOWN) -> JobState | None:
        async def work(_desk: Desk, _claim: Claim) -> None:
            raise error

        return await attend(self.desk, claim, self.keeper, work)

    async def works(self, claim: Claim) -> JobState | None:
        """The job asks the model, gets an answer, and is done."""
        return await attend(self.desk, claim, self.keeper, self.ask_and_finish)

    async def ask_and_finish(self, desk: Desk, claim: Claim) -> None:
        await desk.client.ask(ask_of(claim))
        await desk.transact(lambda session: queue.finish(session, claim))

    def admit(self, claim: Claim) -> Paused | None:
        with self.database.transaction() as session:
            return lanes.admit(session, claim)

    async def open_breaker(self) -> list[Claim]:
        """Two jobs fail: the lane is closed from now on."""
        claims = self.claims(2)
        for claim in claims:
            await self.fails(claim)
        assert self.closed() == {ANTHROPIC}
        return claims

    def go(self, seconds: float) -> None:
        assert self.database.simulated_now is not None
        self.database.simulated_now += timedelta(seconds=seconds)

    def closed(self) -> set[Lane]:
        with self.database.reading() as session:
            return lanes.closed(session)

    def told(self) -> list[LaneChange]:
        with self.database.reading() as session:
            return [transition.change for transition in lanes.transitions_to_tell(session)]

    def job(self, claim: Claim, column: str) -> object:
        return scalar(self.database, f"SELECT {column} FROM nightdesk.jobs WHERE id = :id", id=claim.job_id)

    def due_in_s(self, claim: Claim) -> float:
        due = self.job(claim, "due_at")
        assert isinstance(due, datetime)
        assert self.database.simulated_now is not None
        return (due - self.database.simulated_now).total_seconds()


def ask_of(claim: Claim) -> Ask:
    return Ask(
        job_id=claim.job_id,
        claim_no=claim.claim_no,
        article_id=claim.article_id,
        site=claim.site,
        phase=claim.phase,
        round=claim.round,
        provider="anthropic",
        model="claude-sonnet-5-5",
        prompt_version="research/1@test",
        input_digest="digest",
        system="You are an editor.",
        user="topic",
        schema=Outline,
        max_output_tokens=4_000,
        min_output_tokens=200,
        deadline_s=30,
    )


@pytest.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    reader = SourceReader(FetchPolicy(user_agent="test"))
    with LeaseKeeper(database, 900) as keeper:
        yield Bench(database, reader, keeper)
    await reader.aclose()


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
        answer = lanes.admit(session, claim)
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


# ── other reasons to close a lane ────────────────────────────────────────────────────────────────


async def test_after_a_refused_key_one_job_at_a_time_tries_it(bench: Bench) -> None:
    blocked = Blocked("401", lane=ANTHROPIC)
    first, second, third = bench.claims(3)
    await bench.fails(first, blocked)
    assert bench.told() == [OPENED]
    bench.go(PAUSE_S)
    assert bench.admit(second) is None
    assert isinstance(bench.admit(third), Paused)
    await bench.fails(second, blocked)
    assert bench.closed() == {ANTHROPIC}
    bench.go(PAUSE_S)
    assert await bench.works(third) is JobState.DONE
    assert bench.told() == [OPENED, CLOSED]


async def test_after_the_time_that_a_provider_named_all_go_on_and_nobody_is_told(bench: Bench) -> None:
    first, second, third = bench.claims(3)
    await bench.fails(first, ToldToWait("429", lane=ANTHROPIC, retry_after_s=120))
    assert bench.closed() == {ANTHROPIC}
    bench.go(121)
    assert (bench.admit(second), bench.admit(third)) == (None, None)
    assert bench.told() == []


async def test_a_try_that_is_told_to_wait_waits_and_the_lane_stays_unproven(bench: Bench) -> None:
    await bench.open_breaker()
    probe, second, third = bench.claims(3)
    bench.go(BREAKER_PAUSE_S)
    await bench.fails(probe, ToldToWait("429", lane=ANTHROPIC, retry_after_s=90))
    assert isinstance(bench.admit(second), Paused)
    bench.go(91)
    assert bench.admit(second) is None
    assert isinstance(bench.admit(third), Paused)


async def test_our_own_limiters_word_pauses_no_lane(bench: Bench) -> None:
    (claim,) = bench.claims(1)
    await bench.fails(claim, ToldToWait("no room", retry_after_s=60))
    assert (bench.job(claim, "state"), bench.job(claim, "attempts")) == ("waiting", 0)
    assert bench.closed() == set()


async def test_a_site_has_a_breaker_of_its_own_that_a_proven_page_closes(bench: Bench) -> None:
    down = Transient("the page is not proven to be live", lane=GARDEN)
    articles = add_articles(bench.database, "a", "b", "c", "d")
    with bench.database.transaction() as session:
        for article in articles:
            queue.add_job(session, article, Phase.PUBLISH, 1, LIMITS)
    first, second, gated, proven = (claim_one(bench.database, phase=Phase.PUBLISH) for _ in range(4))
    await bench.fails(first, down)
    await bench.fails(second, down)
    assert bench.closed() == {GARDEN}
    bench.go(BREAKER_PAUSE_S)

    async def send_back(desk: Desk, claim: Claim) -> None:
        await desk.transact(lambda session: queue.finish(session, claim, "sent back by the gate"))

    await attend(bench.desk, gated, bench.keeper, send_back)
    assert bench.told() == [OPENED], "the gate alone says nothing of the site"

    async def publish(desk: Desk, claim: Claim) -> None:
        def write(session: Session) -> None:
            session.connection().execute(
                text("""
                    INSERT INTO nightdesk.publications
                        (article_id, round, job_id, claim_no, site, state, verified_at)
                    VALUES (:article_id, 1, :job_id, :claim_no, 'garden', 'verified', nightdesk.now())
                """),
                {"article_id": claim.article_id, "job_id": claim.job_id, "claim_no": claim.claim_no},
            )
            queue.finish(session, claim)

        await desk.transact(write)

    await attend(bench.desk, proven, bench.keeper, publish)
    assert bench.closed() == set()
    assert bench.told() == [OPENED, CLOSED]


# ── cost, and the whole ──────────────────────────────────────────────────────────────────────────


async def test_a_success_writes_nothing_when_there_is_nothing_to_forget(bench: Bench) -> None:
    (claim,) = bench.claims(1)
    await bench.desk.client.ask(ask_of(claim))
    with bench.database.transaction() as session:
        assert lanes.admit(session, claim) is None
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
                    lanes.admit(session, claim)
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
    down = 12

    def answer(request: ModelRequest) -> ModelReply | CallFailed:
        nonlocal down
        down -= 1
        if down > 0 or "topic: poison" in request.user:
            return CallFailed(Transient("503", lane=ANTHROPIC), Billing.NOTHING)
        return reply(brief)

    bench.model._answer = answer
    await Runner(bench.desk, "run-a", patience_s=600).run_until_idle()
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
