"""What the queue promises."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from nightdesk.db import Database, now
from nightdesk.desk import lanes, queue
from nightdesk.desk.dead_letters import route_failed
from nightdesk.desk.failure_record import FailureRecord, record_failure
from nightdesk.desk.policy import Verdict
from nightdesk.errors import Fenced, Lane, LaneKind, Transient
from nightdesk.states import JobState, Phase
from tests.integration.desk_fixtures import LIMITS, PIN, add_articles, claim_one, scalar


def state(database: Database, job_id: int) -> object:
    return scalar(database, "SELECT state FROM nightdesk.jobs WHERE id = :id", id=job_id)


def later(database: Database, **delta: float) -> None:
    with database.reading() as session:
        database.simulated_now = now(session) + timedelta(**delta)


def test_the_highest_priority_is_claimed_first_and_the_oldest_among_equals(database: Database) -> None:
    low = add_articles(database, "old and low")
    add_articles(database, "new and high", priority=5)
    add_articles(database, "newest and high", priority=5)
    with database.transaction() as session:
        claims = queue.claim(session, run="r", phase=Phase.RESEARCH, limit=3, lease_s=60, pin=PIN)
    topics = [
        scalar(database, "SELECT topic FROM nightdesk.articles WHERE id = :id", id=c.article_id)
        for c in claims
    ]
    assert topics == ["new and high", "newest and high", "old and low"]
    assert claims[2].article_id == low[0]


def test_concurrent_claimers_never_hold_the_same_job(database: Database) -> None:
    add_articles(database, *(f"topic {number}" for number in range(40)))

    def take(worker: int) -> list[int]:
        got: list[int] = []
        while True:
            with database.transaction() as session:
                claims = queue.claim(
                    session, run=f"run-{worker}", phase=Phase.RESEARCH, limit=3, lease_s=60, pin=PIN
                )
            if not claims:
                return got
            got += [claim.job_id for claim in claims]

    with ThreadPoolExecutor(6) as pool:
        taken = [job for jobs in pool.map(take, range(6)) for job in jobs]
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 40


def test_a_second_job_of_the_same_article_phase_and_round_changes_nothing(database: Database) -> None:
    (article,) = add_articles(database, "one")
    with database.transaction() as session:
        queue.add_job(session, article, Phase.RESEARCH, 1, LIMITS)
    assert scalar(database, "SELECT count(*) FROM nightdesk.jobs") == 1


def test_a_late_zombie_changes_nothing_and_is_told_so(database: Database) -> None:
    add_articles(database, "one")
    zombie = claim_one(database, "run-zombie")
    later(database, minutes=16)
    with database.transaction() as session:
        assert queue.rescue_expired(session) == [zombie.job_id]
    fresh = claim_one(database, "run-fresh")
    assert fresh.claim_no == zombie.claim_no + 1
    attempts: list[object] = [
        lambda s: queue.renew(s, zombie, 900),
        lambda s: queue.finish(s, zombie),
        lambda s: queue.give_up(s, zombie, Verdict(JobState.FAILED), FailureRecord("late")),
    ]
    for attempt in attempts:
        with pytest.raises(Fenced), database.transaction() as session:
            attempt(session)  # type: ignore[operator]
    assert state(database, fresh.job_id) == "leased"
    with database.transaction() as session:
        queue.finish(session, fresh)
    assert state(database, fresh.job_id) == "done"


def test_what_a_fenced_worker_wrote_in_the_same_transaction_is_gone(database: Database) -> None:
    (article,) = add_articles(database, "one")
    zombie = claim_one(database)
    later(database, minutes=16)
    with database.transaction() as session:
        queue.rescue_expired(session)
    with pytest.raises(Fenced), database.transaction() as session:
        queue.add_job(session, article, Phase.OUTLINE, 1, LIMITS)
        queue.finish(session, zombie)
    assert scalar(database, "SELECT count(*) FROM nightdesk.jobs WHERE phase = 'outline'") == 0


def test_a_job_that_kills_its_workers_fails_after_three_attempts_with_every_attempt_kept(
    database: Database,
) -> None:
    add_articles(database, "poison", "neighbour")
    for _ in range(3):
        with database.transaction() as session:
            (poison,) = queue.claim(session, run="r", phase=Phase.RESEARCH, limit=1, lease_s=60, pin=PIN)
        later(database, minutes=2)
        with database.transaction() as session:
            queue.rescue_expired(session)
    assert state(database, poison.job_id) == "failed"
    with database.transaction() as session:
        assert route_failed(session, [poison.job_id], layer="sweep") == 1
        assert route_failed(session, [poison.job_id], layer="event") == 0
    assert state(database, poison.job_id) == "dead"
    letter = "SELECT {} FROM nightdesk.dead_letters"
    assert scalar(database, letter.format("count(*)")) == 1
    assert scalar(database, letter.format("jsonb_array_length(attempts)")) == 3
    assert scalar(database, letter.format("error_class")) == "lease_expired"
    assert scalar(database, letter.format("input->'article'->>'topic'")) == "poison"
    assert claim_one(database).job_id != poison.job_id


def test_an_attempt_that_is_given_back_is_not_counted_but_the_fence_grows(database: Database) -> None:
    add_articles(database, "one")
    first = claim_one(database)
    with database.transaction() as session:
        queue.give_up(session, first, Verdict(JobState.READY, counted=False), FailureRecord("stopped"))
    second = claim_one(database)
    assert (second.attempts, second.claim_no) == (1, 2)


def test_a_waiting_job_is_ready_when_it_is_due_and_not_before(database: Database) -> None:
    add_articles(database, "one")
    claim = claim_one(database)
    record = record_failure(Transient("the provider hiccuped"))
    with database.transaction() as session:
        queue.give_up(session, claim, Verdict(JobState.WAITING, wait_s=1_800), record)
    later(database, minutes=29)
    with database.transaction() as session:
        assert queue.wake_due(session) == 0
    later(database, minutes=2)
    with database.transaction() as session:
        assert queue.wake_due(session) == 1
    assert state(database, claim.job_id) == "ready"


def test_the_first_claim_pins_model_and_prompt(database: Database) -> None:
    add_articles(database, "one")
    first = claim_one(database)
    with database.transaction() as session:
        queue.give_up(session, first, Verdict(JobState.READY), FailureRecord("again"))
        other = queue.Pin("openai", "gpt-6-luna", "draft/2@other")
        (second,) = queue.claim(session, run="r", phase=Phase.RESEARCH, limit=1, lease_s=60, pin=other)
    assert (second.provider, second.model, second.prompt_version) == (
        first.provider,
        first.model,
        first.prompt_version,
    )


def test_a_renewed_lease_is_not_rescued(database: Database) -> None:
    add_articles(database, "one")
    claim = claim_one(database)
    later(database, minutes=10)
    with database.transaction() as session:
        queue.renew(session, claim, 900)
    later(database, minutes=10)
    with database.transaction() as session:
        assert queue.rescue_expired(session) == []
    with database.transaction() as session:
        queue.finish(session, claim)


@pytest.mark.parametrize("hostile", ["a\x00b", "\ud83d", "x" * 3_000_000, ""])
def test_recording_a_failure_never_fails(database: Database, hostile: str) -> None:
    add_articles(database, "one")
    claim = claim_one(database)

    class Exploding(Exception):
        def __str__(self) -> str:
            if hostile == "":
                raise ValueError("no text for you")
            return hostile

    with database.transaction() as session:
        queue.give_up(session, claim, Verdict(JobState.FAILED), record_failure(Exploding()))
        route_failed(session, [claim.job_id], layer="runner")
    assert state(database, claim.job_id) == "dead"


def test_a_claim_of_given_articles_takes_no_others(database: Database) -> None:
    add_articles(database, "one", "two")
    with database.transaction() as session:
        none = queue.claim(
            session, run="r", phase=Phase.RESEARCH, limit=5, lease_s=60, pin=PIN, articles=[uuid.uuid4()]
        )
    assert none == []


def is_there_work(database: Database, phase: Phase = Phase.RESEARCH) -> bool:
    with database.reading() as session:
        return queue.is_there_work(session, phase)


def test_there_is_work_while_something_is_ready_due_or_lost_and_only_for_its_phase(
    database: Database,
) -> None:
    assert not is_there_work(database)
    add_articles(database, "one")
    assert is_there_work(database)
    assert not is_there_work(database, Phase.OUTLINE)
    claim = claim_one(database)
    assert not is_there_work(database), "it is held"
    later(database, minutes=16)
    assert is_there_work(database), "its worker is lost"
    with database.transaction() as session:
        queue.renew(session, claim, 900)
        queue.give_up(session, claim, Verdict(JobState.WAITING, wait_s=1_800), FailureRecord("503"))
    assert not is_there_work(database), "it is not due"
    later(database, minutes=31)
    assert is_there_work(database), "it is due"


def test_a_suspect_is_work(database: Database) -> None:
    add_articles(database, "one")
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET deaths = 2"))
    assert is_there_work(database)


def test_what_waits_for_a_closed_lane_is_no_work_until_it_opens(database: Database) -> None:
    add_articles(database, "pinned")
    claim = claim_one(database)
    anthropic = Lane(LaneKind.PROVIDER, "anthropic")
    with database.transaction() as session:
        queue.give_up(session, claim, Verdict(JobState.READY, counted=False), FailureRecord("stopped"))
        lanes.pause(session, anthropic, "402", 600)
        lanes.pause(session, Lane(LaneKind.SITE, "garden"), "down", 600)
    assert not is_there_work(database)
    add_articles(database, "not begun")
    assert is_there_work(database), "any provider may do it"
    with database.transaction() as session:
        session.connection().execute(
            text("UPDATE nightdesk.jobs SET phase = 'publish', provider = NULL WHERE claim_no = 0")
        )
    assert not is_there_work(database, Phase.PUBLISH), "its site is closed"
    later(database, minutes=11)
    assert is_there_work(database)
    assert is_there_work(database, Phase.PUBLISH)


def test_one_phase_is_woken_and_rescued_without_the_others(database: Database) -> None:
    add_articles(database, "waits", "is lost")
    with database.transaction() as session:
        waits, lost = queue.claim(session, run="r", phase=Phase.RESEARCH, limit=2, lease_s=60, pin=PIN)
        queue.give_up(session, waits, Verdict(JobState.WAITING, wait_s=60), FailureRecord("503"))
    later(database, minutes=2)
    with database.transaction() as session:
        assert queue.wake_due(session, Phase.DRAFT) == 0
        assert queue.rescue_expired(session, Phase.DRAFT) == []
        assert queue.wake_due(session, Phase.RESEARCH) == 1
        assert queue.rescue_expired(session, Phase.RESEARCH) == [lost.job_id]
