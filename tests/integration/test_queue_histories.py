"""Any history of claims, ends, deaths and lost workers leaves a queue that makes sense.

One machine of rules runs against the real database; the model is what each worker believes it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import Database, now
from nightdesk.desk import queue
from nightdesk.desk.dead_letters import discard, requeue, route_run, sweep_failed
from nightdesk.desk.dead_runs import take_back_run
from nightdesk.desk.failure_record import FailureRecord, record_failure
from nightdesk.desk.policy import Verdict, decide
from nightdesk.desk.queue import Claim
from nightdesk.errors import Fenced, InputError, NeedsPerson, Permanent, Reason, Transient
from nightdesk.states import TRANSITIONS, JobState, Phase
from tests.integration.desk_fixtures import PIN, add_articles

WORKERS = ("run-a", "run-b", "run-c")
ERRORS = (
    Transient("a cut line"),
    Permanent("no \x00 use"),
    NeedsPerson("look", reasons=(Reason("rule", "why"),)),
    RuntimeError("\ud800 a bug"),
)
worker = st.sampled_from(WORKERS)
#: Few, so that a history comes back to the same ones.
MOST_JOBS = 4
#: What a history may begin with.
PASTS = ("none", "deaths", "a letter", "requeued", "discarded")
#: What the histories must have come to, taken together: else they prove nothing of it.
REACHED = ("a zombie's end", "a suspect's claim", "a letter", "a second letter", "requeue", "discard")


class QueueHistory(RuleBasedStateMachine):
    """Workers claim, finish, fail, die and come back late; a clock jumps; a person requeues."""

    database: Database
    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.topics = 0
        self.held: list[Claim] = []  #: claims that some worker believes it has
        self.ended: set[tuple[int, int]] = set()
        self.before: dict[int, Any] = {}
        self.undecided = 0  #: letters that nobody has dealt with

    @initialize(past=st.sampled_from(PASTS))
    def begin(self, past: str) -> None:
        """With a past, since a history of forty steps rarely comes so far by itself."""
        self.database.simulated_now = None
        with self.database.transaction() as session:
            for table in ("dead_letters", "job_attempts", "jobs", "articles"):
                session.connection().execute(text(f"DELETE FROM nightdesk.{table}"))
            self.database.simulated_now = now(session)
        if past == "none":
            return
        self.enqueue()
        self.enqueue()
        if past == "deaths":
            self.die_at_work("run-a")
            self.die_at_work("run-b")
            self.claim("run-c", 1)
            self._end(self.held[0], partial(self._finish, self.held[0]))
            return
        self.fail_for_good("run-a", "event")
        if past != "a letter":
            self.decide_on(0, requeue if past == "requeued" else discard)
            self.fail_for_good("run-b", "sweep")

    @precondition(lambda self: self.topics < MOST_JOBS)
    @rule()
    def enqueue(self) -> None:
        add_articles(self.database, f"topic {self.topics}")
        self.topics += 1

    @rule(who=worker, limit=st.integers(1, 3))
    def claim(self, who: str, limit: int) -> None:
        """As a tick does: suspects first, one at a time."""
        if not self._claim(who, 1, suspects=True):
            self._claim(who, limit, suspects=False)

    def _claim(self, who: str, limit: int, *, suspects: bool) -> list[Claim]:
        with self.database.transaction() as session:
            claims = queue.claim(
                session, run=who, phase=Phase.RESEARCH, limit=limit, lease_s=900, pin=PIN, suspects=suspects
            )
        assert len(claims) <= limit
        self.held += claims
        self.reached["a suspect's claim"] += len(claims) if suspects else 0
        return claims

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.held))
        self._end(claim, partial(self._finish, claim))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), error=st.sampled_from(ERRORS), chance=st.floats(0, 0.99))
    def fail(self, data: st.DataObject, error: Exception, chance: float) -> None:
        claim = data.draw(st.sampled_from(self.held))
        verdict = decide(error, attempts=claim.attempts, max_attempts=claim.max_attempts, chance=chance)
        self._end(claim, partial(self._give_up, claim, verdict, record_failure(error)))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.held))
        verdict = Verdict(JobState.READY, counted=False)
        self._end(claim, partial(self._give_up, claim, verdict, record_failure(RuntimeError("stopped"))))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.held))
        current = self._is_current(claim)
        with self.database.transaction() as session:
            assert bool(queue.renew_all(session, [claim], 900)) == current

    @rule(who=worker)
    def start_again(self, who: str) -> None:
        """A worker of the same name gives back what the one before it held, and knows nothing of it."""
        with self.database.transaction() as session:
            queue.hand_back_run(session, who)

    @rule(who=worker)
    def die_at_work(self, who: str) -> None:
        """The worker claims and is killed, and somebody knows; its memory lives on as a zombie's."""
        self.claim(who, 2)
        self._die(who)

    def _die(self, who: str) -> None:
        with self.database.transaction() as session:
            take_back_run(session, who)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def be_robbed(self, data: st.DataObject) -> None:
        """The worker is taken for dead, others claim what it held, and it goes on as if nothing had been."""
        victim = data.draw(st.sampled_from(self.held)).run
        self._die(victim)
        self.claim("run-robber", 3)

    @rule(who=worker, layer=st.sampled_from(("event", "sweep")))
    def fail_for_good(self, who: str, layer: str) -> None:
        """An attempt that ends the job, up to its letter."""
        self.claim(who, 1)
        for claim in [one for one in self.held if one.run == who and self._is_current(one)]:
            record = record_failure(Permanent("no \x00 use"))
            self._end(claim, partial(self._give_up, claim, Verdict(JobState.FAILED), record))
        with self.database.transaction() as session:
            route_run(session, who, layer) if layer == "event" else sweep_failed(session, 0, layer)

    @staticmethod
    def _finish(claim: Claim, session: Session) -> None:
        queue.finish(session, claim)

    @staticmethod
    def _give_up(claim: Claim, verdict: Verdict, record: FailureRecord, session: Session) -> None:
        queue.give_up(session, claim, verdict, record)

    @rule(minutes=st.sampled_from([-30, 1, 16, 31, 600]))
    def jump(self, minutes: int) -> None:
        assert self.database.simulated_now is not None
        self.database.simulated_now += timedelta(minutes=minutes)

    @rule()
    def tidy(self) -> None:
        with self.database.transaction() as session:
            queue.wake_due(session)
            queue.rescue_expired(session)

    @rule(who=worker)
    def route(self, who: str) -> None:
        with self.database.transaction() as session:
            route_run(session, who, "event")

    @rule()
    def sweep(self) -> None:
        with self.database.transaction() as session:
            sweep_failed(session, 120, "sweep")

    @precondition(lambda self: self.undecided)
    @rule(letter=st.integers(0, 4), act=st.sampled_from([requeue, requeue, discard]))
    def decide_on(self, letter: int, act: Any) -> None:
        with self.database.reading() as session:
            ids = session.connection().execute(
                text("SELECT id FROM nightdesk.dead_letters ORDER BY resolution NULLS FIRST, id")
            )
            known = list(ids.scalars())
        # Sometimes one that was dealt with: it must be refused.
        if letter < len(known):
            try:
                with self.database.transaction() as session:
                    act(session, known[letter], who="ana", why="a test")
                self.reached[act.__name__] += 1
            except InputError:
                pass

    def _end(self, claim: Claim, write: Any) -> None:
        current = self._is_current(claim)
        before = self._rows()
        try:
            with self.database.transaction() as session:
                write(session)
        except Fenced:
            assert not current
            assert self._rows() == before, "a zombie changes nothing"
            self.reached["a zombie's end"] += 1
        else:
            assert current
            key = (claim.job_id, claim.claim_no)
            assert key not in self.ended, "a claim ends once"
            self.ended.add(key)
            self.held.remove(claim)

    def _rows(self) -> list[Any]:
        with self.database.reading() as session:
            return [
                session.connection().execute(text(f"SELECT * FROM nightdesk.{table} ORDER BY id")).all()
                for table in ("jobs", "job_attempts", "dead_letters")
            ]

    def _is_current(self, claim: Claim) -> bool:
        with self.database.reading() as session:
            row = (
                session.connection()
                .execute(
                    text("SELECT state, claim_no FROM nightdesk.jobs WHERE id = :id"), {"id": claim.job_id}
                )
                .one()
            )
        return bool(row.state == "leased" and row.claim_no == claim.claim_no)

    @invariant()
    def every_job_makes_sense(self) -> None:
        jobs, attempts, letters = self._rows()
        assert len(jobs) == self.topics, "nothing is lost"
        made: dict[int, list[Any]] = {job.id: [] for job in jobs}
        for attempt in attempts:
            made[attempt.job_id].append(attempt)
        holders = {(claim.job_id, claim.claim_no): claim.run for claim in self.held}
        for job in jobs:
            leased = job.state == "leased"
            assert (job.locked_by is not None) == leased
            assert (job.locked_until is not None) == leased
            assert not leased or job.locked_by == holders[job.id, job.claim_no], "one worker holds it"
            assert 0 <= job.attempts <= job.max_attempts
            assert job.state != "waiting" or job.due_at is not None
            numbers = sorted(attempt.claim_no for attempt in made[job.id])
            assert numbers == list(range(1, job.claim_no + 1)), "every claim has its row"
            running = [attempt.claim_no for attempt in made[job.id] if attempt.ended_at is None]
            assert running == ([job.claim_no] if leased else []), "what ended has an end"
            self._moved_as_allowed(job)
        self._letters_are_complete(jobs, letters)

    def _letters_are_complete(self, jobs: list[Any], letters: list[Any]) -> None:
        by_claim = {(letter.job_id, letter.claim_no): letter for letter in letters}
        assert len(by_claim) == len(letters)
        for job in jobs:
            assert job.state != "dead" or by_claim[job.id, job.claim_no].resolution is None
        for letter in letters:
            assert letter.message
            assert letter.input["article"]["topic"]
            assert isinstance(letter.input["phase"], dict)
            assert [one["claim_no"] for one in letter.attempts] == list(range(1, letter.claim_no + 1))
        self.undecided = sum(letter.resolution is None for letter in letters)
        self.reached["a letter"] += len(letters)
        self.reached["a second letter"] += len(letters) - len({letter.job_id for letter in letters})

    def _moved_as_allowed(self, job: Any) -> None:
        before = self.before.get(job.id)
        if before is not None:
            assert job.claim_no >= before.claim_no
            assert reachable(JobState(before.state), JobState(job.state)), (before.state, job.state)
        self.before[job.id] = job


def reachable(start: JobState, end: JobState) -> bool:
    """One rule may make several moves: failed and dead, waiting and ready."""
    seen, todo = {start}, [start]
    while todo:
        for state in TRANSITIONS[todo.pop()]:
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return end in seen


@pytest.fixture
def machine(database: Database) -> Iterator[type[QueueHistory]]:
    QueueHistory.database = database
    QueueHistory.reached.clear()
    yield QueueHistory
    database.simulated_now = None


@pytest.mark.timeout(180)
def test_any_history_leaves_a_queue_that_makes_sense(machine: type[QueueHistory]) -> None:
    for past in PASTS:
        history = machine()
        history.begin(past)
        history.every_job_makes_sense()
    case = machine.TestCase
    case.settings = settings(
        max_examples=40,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
    assert [what for what in REACHED if not machine.reached[what]] == []
