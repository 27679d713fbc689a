"""A lane is closed for everybody until its time, or until somebody opens it; each change is told once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import Database, now
from nightdesk.desk import lanes, queue
from nightdesk.desk.attempt import attend
from nightdesk.desk.desk import Desk
from nightdesk.desk.lanes import Paused
from nightdesk.desk.lease_keeper import LeaseKeeper
from nightdesk.desk.outputs import Outline
from nightdesk.desk.policy import (
    BREAKER_FAILURES,
    BREAKER_JOBS,
    BREAKER_LONGEST_PAUSE_S,
    BREAKER_PAUSE_S,
    PAUSE_S,
    TRIES,
    breaker_pause_s,
    is_down,
)
from nightdesk.desk.queue import Claim
from nightdesk.errors import Blocked, Lane, LaneKind, Permanent, ToldToWait, Transient
from nightdesk.llm.metered import Ask, MeteredClient
from nightdesk.llm.providers import ModelChoice
from nightdesk.models.lane_pause import LaneChange
from nightdesk.research import FetchPolicy, SourceReader
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
OPENAI = Lane(LaneKind.PROVIDER, "openai")
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
            return lanes.enter(session, claim)

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


@asynccontextmanager
async def opened_bench(database: Database) -> AsyncIterator[Bench]:
    """A bench at the present time."""
    reader = SourceReader(FetchPolicy(user_agent="test"))
    with LeaseKeeper(database, 900) as keeper:
        yield Bench(database, reader, keeper)
    await reader.aclose()


@pytest.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    async with opened_bench(database) as made:
        yield made


def go(database: Database, seconds: float) -> None:
    with database.reading() as session:
        database.simulated_now = now(session) + timedelta(seconds=seconds)


def closed(database: Database) -> set[Lane]:
    with database.reading() as session:
        return lanes.closed(session)


def changes(database: Database) -> list[tuple[Lane, LaneChange]]:
    with database.reading() as session:
        return [(one.lane, one.change) for one in lanes.transitions_to_tell(session)]


def test_a_pause_closes_its_lane_and_no_other(database: Database) -> None:
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "429", 60)
    assert closed(database) == {ANTHROPIC}
    go(database, 61)
    assert closed(database) == set()


def test_a_job_works_on_one_lane_its_provider_or_when_it_publishes_its_site(database: Database) -> None:
    (article,) = add_articles(database, "one")
    with database.transaction() as session:
        queue.add_job(session, article, Phase.PUBLISH, 1, LIMITS)
    assert lanes.lane_of(claim_one(database)) == ANTHROPIC
    assert lanes.lane_of(claim_one(database, phase=Phase.PUBLISH)) == GARDEN


def test_while_one_job_tries_a_lane_nobody_is_claimed_for_it_but_the_job_itself_may_go_on(
    database: Database,
) -> None:
    add_articles(database, "one", "two")
    claim = claim_one(database)
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
        queue.hand_back_run(session, "run-a", [claim.job_id])
    go(database, 61)
    with database.transaction() as session:
        assert lanes.enter(session, claim) is None
        assert lanes.closed(session) == {ANTHROPIC}
        assert lanes.enter(session, claim) is None


def test_a_pause_that_somebody_reports_while_one_job_tries_the_lane_is_kept_to_its_time(
    database: Database,
) -> None:
    add_articles(database, "one")
    claim = claim_one(database)
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
    go(database, 61)
    with database.transaction() as session:
        assert lanes.enter(session, claim) is None
        lanes.pause(session, ANTHROPIC, "429", 600)
        lanes.ended(session, claim)
    go(database, 599)
    assert closed(database) == {ANTHROPIC}


def test_a_person_opens_a_lane_and_it_is_trusted_at_once(database: Database) -> None:
    add_articles(database, "one", "two")
    first, second = claim_one(database), claim_one(database)
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
        assert lanes.reopen(session, ANTHROPIC)
        assert lanes.enter(session, first) is None
        assert lanes.enter(session, second) is None
        assert not lanes.reopen(session, ANTHROPIC)
    assert changes(database) == [(ANTHROPIC, OPENED), (ANTHROPIC, CLOSED)]


def test_a_person_who_opens_a_lane_that_was_open_changes_nothing(database: Database) -> None:
    with database.transaction() as session:
        assert not lanes.reopen(session, ANTHROPIC)
    assert changes(database) == []


def test_changes_are_told_in_order_each_once_and_only_what_was_sent_is_marked(database: Database) -> None:
    with database.transaction() as session:
        for lane in (ANTHROPIC, GARDEN, OPENAI):
            lanes.pause(session, lane, f"{lane} is down", 60, unproven=True)
        lanes.reopen(session, ANTHROPIC)
    with database.transaction() as session:
        told = lanes.transitions_to_tell(session, limit=2)
        assert [(one.lane, one.change, one.reason) for one in told] == [
            (ANTHROPIC, OPENED, "provider anthropic is down"),
            (GARDEN, OPENED, "site garden is down"),
        ]
    with database.transaction() as session:
        assert lanes.mark_told(session, told) == 2
        assert lanes.mark_told(session, told) == 0
        assert lanes.mark_told(session, []) == 0
    assert changes(database) == [(OPENAI, OPENED), (ANTHROPIC, CLOSED)]


def test_a_change_is_told_only_if_what_it_is_part_of_was_committed(database: Database) -> None:
    with pytest.raises(RuntimeError), database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
        raise RuntimeError
    assert changes(database) == []
    assert closed(database) == set()


def test_a_lane_that_is_reported_again_is_told_once_and_a_wait_that_a_provider_names_never(
    database: Database,
) -> None:
    with database.transaction() as session:
        lanes.pause(session, OPENAI, "429", 60)
        for _ in range(3):
            lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
    assert changes(database) == [(ANTHROPIC, OPENED)]


def test_a_change_carries_the_databases_time(database: Database) -> None:
    go(database, 86_400)
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
    with database.reading() as session:
        (transition,) = lanes.transitions_to_tell(session)
    assert transition.at == database.simulated_now


def test_pauses_that_are_over_leave_no_row_open(database: Database) -> None:
    """Else a run would look again and again at a lane that nobody waits for."""
    with database.transaction() as session:
        lanes.pause(session, ANTHROPIC, "401", 60, unproven=True)
        lanes.pause(session, OPENAI, "429", 60)
    go(database, 61)
    with database.transaction() as session:
        assert lanes.end_due(session) == 2
    assert scalar(database, "SELECT count(*) FROM nightdesk.lane_pauses WHERE closed_at IS NULL") == 0


def test_failures_outside_the_window_are_not_kept(database: Database) -> None:
    add_articles(database, "one")
    claim = claim_one(database)
    for _ in range(5):
        with database.transaction() as session:
            lanes.failed(session, claim, ANTHROPIC, "503")
        go(database, 400)
    assert scalar(database, "SELECT cardinality(failed_jobs) FROM nightdesk.lane_health") == 2
    assert scalar(database, "SELECT cardinality(failed_at) FROM nightdesk.lane_health") == 2


def test_a_lane_is_down_after_four_failed_tries_of_two_jobs() -> None:
    assert (BREAKER_FAILURES, BREAKER_JOBS, TRIES) == (4, 2, 4)
    assert not is_down(attempts=50, jobs=1)
    assert is_down(attempts=2, jobs=2)


def test_the_breakers_pause_doubles_from_two_minutes_to_half_an_hour() -> None:
    pauses, last_s = [], None
    for _ in range(7):
        last_s = breaker_pause_s(last_s)
        pauses.append(last_s)
    assert pauses == [BREAKER_PAUSE_S, 240, 480, 960, 1800, 1800, BREAKER_LONGEST_PAUSE_S]


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


def publish_claims(bench: Bench, count: int) -> list[Claim]:
    articles = add_articles(bench.database, *(f"page {number}" for number in range(count)))
    with bench.database.transaction() as session:
        for article in articles:
            queue.add_job(session, article, Phase.PUBLISH, 1, LIMITS)
    return [claim_one(bench.database, phase=Phase.PUBLISH) for _ in range(count)]


def note_publication(session: Session, claim: Claim, *, verified_before_s: float = 0.0) -> None:
    """The row of a page that was proven to be live, maybe before this attempt began."""
    session.connection().execute(
        text("""
            INSERT INTO nightdesk.publications
                (article_id, round, job_id, claim_no, site, state, verified_at)
            VALUES (:article_id, 1, :job_id, :claim_no, 'garden', 'verified',
                    nightdesk.now() - make_interval(secs => :before_s))
        """),
        {
            "article_id": claim.article_id,
            "job_id": claim.job_id,
            "claim_no": claim.claim_no,
            "before_s": verified_before_s,
        },
    )


SITE_DOWN = Transient("the page is not proven to be live", lane=GARDEN)


async def test_a_site_has_a_breaker_of_its_own_that_a_proven_page_closes(bench: Bench) -> None:
    first, second, gated, proven = publish_claims(bench, 4)
    await bench.fails(first, SITE_DOWN)
    await bench.fails(second, SITE_DOWN)
    assert bench.closed() == {GARDEN}
    bench.go(BREAKER_PAUSE_S)

    async def send_back(desk: Desk, claim: Claim) -> None:
        await desk.transact(lambda session: queue.finish(session, claim, "sent back by the gate"))

    await attend(bench.desk, gated, bench.keeper, send_back)
    assert bench.told() == [OPENED], "the gate alone says nothing of the site"

    async def publish(desk: Desk, claim: Claim) -> None:
        def write(session: Session) -> None:
            note_publication(session, claim)
            queue.finish(session, claim)

        await desk.transact(write)

    await attend(bench.desk, proven, bench.keeper, publish)
    assert bench.closed() == set()
    assert bench.told() == [OPENED, CLOSED]


async def test_a_page_that_was_proven_before_does_not_prove_that_its_site_works_now(bench: Bench) -> None:
    first, second, again = publish_claims(bench, 3)
    await bench.fails(first, SITE_DOWN)
    await bench.fails(second, SITE_DOWN)
    bench.go(BREAKER_PAUSE_S)

    async def republish(desk: Desk, claim: Claim) -> None:
        await desk.transact(lambda session: note_publication(session, claim, verified_before_s=3_600))
        raise Permanent("the page has no title")

    await attend(bench.desk, again, bench.keeper, republish)
    assert bench.told() == [OPENED]
