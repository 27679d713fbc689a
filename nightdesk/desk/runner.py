"""The synchronous runner: works on jobs in this process until nothing is left that can move.

It claims the same rows, through the same functions, as the scheduled flows do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.desk import lanes, queue
from nightdesk.desk.dead_letters import route_failed
from nightdesk.desk.desk import Desk
from nightdesk.desk.failure_record import record_failure
from nightdesk.desk.lanes import Paused
from nightdesk.desk.lease_keeper import LeaseKeeper
from nightdesk.desk.policy import Verdict, decide
from nightdesk.desk.queue import Claim
from nightdesk.desk.site_lease import SiteBusy
from nightdesk.desk.work import work
from nightdesk.errors import DatabaseError, Fenced, Lane, LaneKind, Transient
from nightdesk.llm.calls import write_off_overdue
from nightdesk.states import JobState, Phase

log = logging.getLogger(__name__)

SITE_BUSY_S = 10.0
_NEXT_DUE = """
    SELECT extract(epoch FROM min(at) - nightdesk.now())::float8 FROM (
        SELECT due_at AS at FROM nightdesk.jobs WHERE state = 'waiting' {only}
        UNION ALL
        SELECT until FROM nightdesk.lane_pauses
        WHERE closed_at IS NULL AND EXISTS (SELECT 1 FROM nightdesk.jobs WHERE state = 'ready' {only})
    ) due
"""


@dataclass
class Runner:
    """Works on jobs, several at a time.

    Args:
        run: the name that claims carry.
        places: how many jobs at a time.
        articles: only jobs of these; None: all.
        patience_s: how long to wait for a job that is not due yet before giving up.
    """

    desk: Desk
    run: str
    places: int = 4
    articles: Sequence[uuid.UUID] | None = None
    patience_s: float = 45.0
    _at_work: set[int] = field(default_factory=set, init=False)

    async def run_until_idle(self) -> None:
        """Claim and work until no job is ready, at work, or due within `patience_s`."""
        tasks: set[asyncio.Task[None]] = set()
        with LeaseKeeper(self.desk.database, self.desk.lease_s) as keeper:
            try:
                while True:
                    await self._fill(tasks, keeper)
                    if not tasks:
                        wait_s = await self.desk.transact(self._next_due_s)
                        if wait_s is None or wait_s > self.patience_s:
                            return
                        await self.desk.world.sleep(max(wait_s, 0.05))
                        continue
                    done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        # The lease keeper cancels work whose claim has ended; anything else is a bug.
                        if not task.cancelled():
                            task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _fill(self, tasks: set[asyncio.Task[None]], keeper: LeaseKeeper) -> None:
        free = self.places - len(tasks)
        if free > 0:
            try:
                claims = await self.desk.transact(lambda session: self._claim(session, free))
            except Transient as gone:
                raise DatabaseError(f"{gone}; start again to go on where it stood") from gone
            for claim in claims:
                self._at_work.add(claim.job_id)
                tasks.add(asyncio.create_task(self._attend(claim, keeper), name=f"job {claim.job_id}"))

    def _claim(self, session: Session, free: int) -> list[Claim]:
        """The last phase first: an article that is nearly done is finished before one is begun.

        A phase whose provider is paused is left alone: its jobs need not be claimed to wait.
        """
        queue.hand_back_run(session, self.run, sorted(self._at_work))
        write_off_overdue(session)
        route_failed(session, queue.rescue_expired(session), layer="runner")
        lanes.end_due(session)
        queue.wake_due(session)
        closed = lanes.closed(session)
        claims: list[Claim] = []
        for phase in reversed(Phase):
            pin = self.desk.pin(phase)
            if free > len(claims) and Lane(LaneKind.PROVIDER, pin.provider or "") not in closed:
                claims += queue.claim(
                    session,
                    run=self.run,
                    phase=phase,
                    limit=free - len(claims),
                    lease_s=self.desk.lease_s,
                    pin=pin,
                    articles=self.articles,
                    closed_sites=_sites(closed) if phase is Phase.PUBLISH else (),
                )
        return claims

    async def _attend(self, claim: Claim, keeper: LeaseKeeper) -> None:
        """Work on one claim; one job's failure never stops another's."""
        try:
            await self._work(claim, keeper)
        finally:
            self._at_work.discard(claim.job_id)

    async def _work(self, claim: Claim, keeper: LeaseKeeper) -> None:
        try:
            with keeper.keeping(claim):
                await work(self.desk, claim)
        except Fenced as error:
            log.warning("%s", error)
        except asyncio.CancelledError:
            await self._hand_back(claim)
            raise
        except Exception as error:
            await self._give_up(claim, error)

    async def _give_up(self, claim: Claim, error: Exception) -> None:
        verdict = self._verdict(claim, error)
        record = record_failure(error)

        def write(session: Session) -> None:
            # The job first, as everywhere: the fence is checked, and locks are taken in one order.
            queue.give_up(session, claim, verdict, record)
            if verdict.pause is not None:
                lanes.pause(session, verdict.pause, record.message, verdict.wait_s or 0.0)
            if verdict.state is JobState.FAILED:
                route_failed(session, [claim.job_id], layer="runner")

        try:
            await self.desk.transact(write)
        except Fenced as fenced:
            log.warning("%s", fenced)
        except Transient as gone:
            # Nothing can be recorded now: the end of the run, or of the lease, takes the job back.
            log.warning("job %s stays leased: %s", claim.job_id, gone)

    def _verdict(self, claim: Claim, error: Exception) -> Verdict:
        if isinstance(error, Paused):
            return Verdict(JobState.WAITING, wait_s=max(error.left_s, 0.1), counted=False)
        if isinstance(error, SiteBusy):
            return Verdict(JobState.WAITING, wait_s=SITE_BUSY_S, counted=False)
        return decide(
            error,
            attempts=claim.attempts,
            max_attempts=claim.max_attempts,
            chance=self.desk.world.random(),
        )

    async def _hand_back(self, claim: Claim) -> None:
        """The run is being stopped: the job is ready for the next one, at no cost."""
        verdict = Verdict(JobState.READY, counted=False)
        record = record_failure(RuntimeError("the run was stopped"))
        with contextlib.suppress(Fenced, Transient):
            await self.desk.transact(lambda session: queue.give_up(session, claim, verdict, record))

    def _next_due_s(self, session: Session) -> float | None:
        only = "" if self.articles is None else "AND article_id = ANY(:articles)"
        values = {} if self.articles is None else {"articles": list(self.articles)}
        found = session.connection().execute(text(_NEXT_DUE.format(only=only)), values).scalar()
        return None if found is None else float(found)


def _sites(closed: set[Lane]) -> list[str]:
    return sorted(lane.name for lane in closed if lane.kind is LaneKind.SITE)
