"""The synchronous runner: works on jobs in this process until nothing is left that can move.

It claims the same rows, through the same functions, as the scheduled flows do.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.desk import lanes, queue
from nightdesk.desk.admission import Order, admit
from nightdesk.desk.attempt import attend
from nightdesk.desk.dead_letters import route_failed
from nightdesk.desk.desk import Desk
from nightdesk.desk.lease_keeper import LeaseKeeper
from nightdesk.desk.queue import Claim
from nightdesk.desk.work import work
from nightdesk.errors import DatabaseError, Lane, LaneKind, Transient
from nightdesk.llm.calls import write_off_overdue
from nightdesk.states import Phase

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
    _alone: bool = field(default=False, init=False)

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
        if not self._at_work:
            # Whoever may kill this process is worked on alone.
            alone = self._claim_phases(session, 1, closed, suspects=True)
            self._alone = bool(alone)
            if alone:
                return alone
        return [] if self._alone else self._claim_phases(session, free, closed, suspects=False)

    def _claim_phases(self, session: Session, free: int, closed: set[Lane], *, suspects: bool) -> list[Claim]:
        claims: list[Claim] = []
        for phase in reversed(Phase):
            pin = self.desk.pin(phase)
            if free > len(claims) and Lane(LaneKind.PROVIDER, pin.provider or "") not in closed:
                claims += admit(
                    session,
                    Order(
                        run=self.run,
                        phase=phase,
                        limit=free - len(claims),
                        lease_s=self.desk.lease_s,
                        pin=pin,
                        articles=self.articles,
                        closed_sites=_sites(closed) if phase is Phase.PUBLISH else (),
                        suspects=suspects,
                        cheap_model=self.desk.models.cheap,
                    ),
                ).claims
        return claims

    async def _attend(self, claim: Claim, keeper: LeaseKeeper) -> None:
        try:
            await attend(self.desk, claim, keeper, work, route_as="runner")
        finally:
            self._at_work.discard(claim.job_id)

    def _next_due_s(self, session: Session) -> float | None:
        only = "" if self.articles is None else "AND article_id = ANY(:articles)"
        values = {} if self.articles is None else {"articles": list(self.articles)}
        found = session.connection().execute(text(_NEXT_DUE.format(only=only)), values).scalar()
        return None if found is None else float(found)


def _sites(closed: set[Lane]) -> list[str]:
    return sorted(lane.name for lane in closed if lane.kind is LaneKind.SITE)
