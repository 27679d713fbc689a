"""One tick of a phase: claim a batch, work on it, refill freed places, until nothing is left or time is up.

A tick knows nothing of who started it. It talks to other ticks through the database alone, so any
number of them may run at once; that there is one per phase is thrift, not safety.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import now
from nightdesk.desk import lanes, queue
from nightdesk.desk.admission import Order, admit
from nightdesk.desk.attempt import Work, attend
from nightdesk.desk.dead_letters import sweep_failed
from nightdesk.desk.desk import Desk
from nightdesk.desk.lease_keeper import LeaseKeeper
from nightdesk.desk.queue import Claim, Pin
from nightdesk.errors import Lane, LaneKind, Transient
from nightdesk.languages import language
from nightdesk.llm.calls import write_off_overdue
from nightdesk.publishing.slugs import make_slug
from nightdesk.states import JobState, Phase

log = logging.getLogger(__name__)

#: A job that works for so long has lost its way: its attempt is ended.
JOB_DEADLINE_S = 3_600.0
#: The part of a tick's time for jobs whose runs died: each is alone in the process meanwhile.
SUSPECTS_SHARE = 1 / 3

_NAMES = text("""
    SELECT j.id, a.slug, a.topic, a.language, a.number
    FROM nightdesk.jobs j JOIN nightdesk.articles a ON a.id = j.article_id WHERE j.id = ANY(:ids)
""")


@dataclass(frozen=True, slots=True)
class TickPlan:
    """What a tick was told.

    Args:
        run: the name that its claims carry.
        batch: jobs at a time.
        refill_s: new jobs are claimed until so long after its start.
        grace_s: failed jobs that nobody routed for so long are routed by this tick.
        url_of_run: the page of a run, for the letters of such jobs.
    """

    phase: Phase
    run: str
    pin: Pin
    batch: int = 3
    refill_s: float = 480.0
    grace_s: float = 120.0
    url_of_run: Callable[[str], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One claim of a tick and where it went; `state` is None if the claim was lost."""

    claim: Claim
    name: str
    state: JobState | None


@dataclass(frozen=True, slots=True)
class TickReport:
    """What a tick did."""

    phase: Phase
    outcomes: tuple[Outcome, ...]
    stopped: bool
    gate_error: str | None = None  #: why jobs were claimed, or none were, without the budgets' gate

    @property
    def counts(self) -> Counter[str]:
        """How many claims went where; `lost` if their claim ended."""
        return Counter(str(one.state or "lost") for one in self.outcomes)

    @property
    def failed(self) -> list[Outcome]:
        """Those that need a dead letter."""
        return [one for one in self.outcomes if one.state is JobState.FAILED]


@dataclass
class Tick:
    """Works on one phase. `on_claim` is told the number of articles so far, each time it grows."""

    desk: Desk
    plan: TickPlan
    work: Work
    on_claim: Callable[[int], Awaitable[None]] | None = None
    _names: dict[int, str] = field(default_factory=dict, init=False)
    _at_work: dict[asyncio.Task[JobState | None], Claim] = field(default_factory=dict, init=False)
    _outcomes: list[Outcome] = field(default_factory=list, init=False)
    _started: datetime | None = field(default=None, init=False)
    _gate_errors: list[str] = field(default_factory=list, init=False)
    _stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def stop(self) -> None:
        """Claim nothing more; give back uncounted what is at work."""
        self._stop.set()

    def name(self, claim: Claim) -> str:
        """The slug of a claimed job's article."""
        return self._names[claim.job_id]

    async def run(self) -> TickReport:
        """Work until nothing is ready, the time is up, or `stop` was called.

        Raises:
            Transient: if the database is gone for longer than its retries.
        """
        stopping = asyncio.create_task(self._stop.wait())
        try:
            with LeaseKeeper(self.desk.database, self.desk.lease_s) as keeper:
                try:
                    await self.desk.transact(self._begin)
                    for suspects in (True, False):
                        await self._drain(keeper, stopping, suspects=suspects)
                finally:
                    await self._end()
        finally:
            stopping.cancel()
        gate_error = self._gate_errors[-1] if self._gate_errors else None
        return TickReport(self.plan.phase, tuple(self._outcomes), self._stop.is_set(), gate_error)

    def _begin(self, session: Session) -> None:
        """What earlier ticks left undone, and when this one began, by the database's clock."""
        self._started = now(session)
        write_off_overdue(session)
        queue.rescue_expired(session, self.plan.phase)
        sweep_failed(session, self.plan.grace_s, layer="sweep", url_of_run=self.plan.url_of_run)
        lanes.end_due(session)

    async def _drain(self, keeper: LeaseKeeper, stopping: asyncio.Task[bool], *, suspects: bool) -> None:
        """Keep the places full until there is nothing to fill them with; suspects one at a time."""
        places = 1 if suspects else self.plan.batch
        while not self._stop.is_set():
            free = places - len(self._at_work)
            claims = await self._claim(free, suspects) if free > 0 else []
            for claim in claims:
                attempt = attend(self.desk, claim, keeper, self._within_deadline)
                self._at_work[asyncio.create_task(attempt, name=f"job {claim.job_id}")] = claim
            if claims and self.on_claim is not None:
                await self.on_claim(len({one.article_id for one in self._claimed()}))
            if not self._at_work:
                return
            done, _ = await asyncio.wait({*self._at_work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                self._note(task)  # type: ignore[arg-type]

    async def _claim(self, free: int, suspects: bool) -> list[Claim]:
        def claim(session: Session) -> list[Claim]:
            # A claim whose commit was cut off is held by this run and worked on by nobody.
            queue.hand_back_run(session, self.plan.run, [one.job_id for one in self._at_work.values()])
            if self._is_over(session, suspects):
                return []
            queue.wake_due(session, self.plan.phase)
            closed = lanes.closed(session)
            if Lane(LaneKind.PROVIDER, self.plan.pin.provider or "") in closed:
                return []
            sites = [lane.name for lane in closed if lane.kind is LaneKind.SITE]
            admission = admit(
                session,
                Order(
                    run=self.plan.run,
                    phase=self.plan.phase,
                    limit=free,
                    lease_s=self.desk.lease_s,
                    pin=self.plan.pin,
                    closed_sites=sites if self.plan.phase is Phase.PUBLISH else (),
                    suspects=suspects,
                    cheap_model=self.desk.models.cheap,
                ),
            )
            if admission.gate_error is not None:
                self._gate_errors.append(admission.gate_error)
            self._names |= _names(session, admission.claims)
            return admission.claims

        try:
            return await self.desk.transact(claim)
        except Transient as gone:
            if not self._at_work:
                raise
            log.warning("no new jobs for now: %s", gone)
            return []

    def _is_over(self, session: Session, suspects: bool) -> bool:
        assert self._started is not None, "a tick begins before it claims"
        share = SUSPECTS_SHARE if suspects else 1.0
        return now(session) >= self._started + timedelta(seconds=self.plan.refill_s * share)

    async def _within_deadline(self, desk: Desk, claim: Claim) -> None:
        try:
            async with asyncio.timeout(JOB_DEADLINE_S):
                await self.work(desk, claim)
        except TimeoutError:
            raise Transient(f"it did not end within {JOB_DEADLINE_S:g} s") from None

    def _claimed(self) -> list[Claim]:
        return [one.claim for one in self._outcomes] + list(self._at_work.values())

    def _note(self, task: asyncio.Task[JobState | None]) -> None:
        claim = self._at_work.pop(task)
        # Work is cancelled when its claim has ended, and when the tick stops; anything else is a bug.
        state = None if task.cancelled() else task.result()
        self._outcomes.append(Outcome(claim, self.name(claim), state))

    async def _end(self) -> None:
        for task in self._at_work:
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)
        for task, claim in list(self._at_work.items()):
            state = JobState.READY if task.cancelled() else None
            del self._at_work[task]
            self._outcomes.append(Outcome(claim, self.name(claim), state))


def _names(session: Session, claims: list[Claim]) -> dict[int, str]:
    rows = session.connection().execute(_NAMES, {"ids": [claim.job_id for claim in claims]}) if claims else ()
    return {
        row.id: row.slug or make_slug(row.topic, language(row.language), fallback=f"article-{row.number}")
        for row in rows
    }
