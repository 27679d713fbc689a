"""One attempt at a claimed job: the work, and what becomes of the job if the work ends in an error.

Every runner attends to its claims through this, so that the failure policy is applied in one place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

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
from nightdesk.errors import Blocked, Fenced, Transient
from nightdesk.states import JobState

log = logging.getLogger(__name__)

SITE_BUSY_S = 10.0

Work: TypeAlias = Callable[[Desk, Claim], Awaitable[None]]


async def attend(
    desk: Desk, claim: Claim, keeper: LeaseKeeper, work: Work, *, route_as: str | None = None
) -> JobState | None:
    """Work on one claim, its lease kept; one job's failure never stops another's.

    Args:
        work: does the job and stores its output (`nightdesk.desk.work.work`, or the same steps as tasks).
        route_as: give a job that failed its dead letter at once, under this name of a layer; None: the
            caller's run ends as failed and the dead-letter run routes it.

    Returns:
        Where the job went; None if the claim had ended, or nothing could be recorded.
    """
    try:
        with keeper.keeping(claim):
            await _enter_lane(desk, claim)
            await work(desk, claim)
        await _leave_lane(desk, claim)
        return JobState.DONE
    except Fenced as error:
        log.warning("%s", error)
        return None
    except asyncio.CancelledError:
        await _hand_back(desk, claim)
        raise
    except Exception as error:
        return await _give_up(desk, claim, error, route_as)


async def _enter_lane(desk: Desk, claim: Claim) -> None:
    paused = await desk.transact(lambda session: lanes.enter(session, claim))
    if paused is not None:
        raise paused


async def _leave_lane(desk: Desk, claim: Claim) -> None:
    """The job is done, whatever becomes of this: a trial that is not noted ends with the job's claim."""
    try:
        await desk.transact(lambda session: lanes.ended(session, claim))
    except Transient as gone:
        log.warning("job %s is done; that its lane works is not noted: %s", claim.job_id, gone)


async def _give_up(desk: Desk, claim: Claim, error: Exception, route_as: str | None) -> JobState | None:
    planned = _verdict(desk, claim, error)
    record = record_failure(error)
    suspect = error.lane if isinstance(error, Transient) else None

    def write(session: Session) -> JobState:
        # The job first, as everywhere: the fence is checked, and locks are taken in one order.
        verdict = planned
        if suspect is not None:
            queue.renew(session, claim, desk.lease_s)
            down_s = lanes.failed(session, claim, suspect, record.message)
            if down_s is not None:
                verdict = Verdict(JobState.WAITING, wait_s=down_s, counted=False)
        queue.give_up(session, claim, verdict, record)
        if verdict.pause is not None:
            wait_s = verdict.wait_s or 0.0
            lanes.pause(session, verdict.pause, record.message, wait_s, unproven=isinstance(error, Blocked))
        elif suspect is None:
            lanes.ended(session, claim)
        if verdict.state is JobState.FAILED and route_as is not None:
            route_failed(session, [claim.job_id], layer=route_as)
        return verdict.state

    try:
        return await desk.transact(write)
    except Fenced as fenced:
        log.warning("%s", fenced)
    except Transient as gone:
        # Nothing can be recorded now: the end of the run, or of the lease, takes the job back.
        log.warning("job %s stays leased: %s", claim.job_id, gone)
    return None


def _verdict(desk: Desk, claim: Claim, error: Exception) -> Verdict:
    if isinstance(error, Paused):
        return Verdict(JobState.WAITING, wait_s=max(error.left_s, 0.1), counted=False)
    if isinstance(error, SiteBusy):
        return Verdict(JobState.WAITING, wait_s=SITE_BUSY_S, counted=False)
    return decide(
        error,
        attempts=claim.attempts,
        max_attempts=claim.max_attempts,
        chance=desk.world.random(),
    )


async def _hand_back(desk: Desk, claim: Claim) -> None:
    """The run is being stopped: the job is ready for the next one, at no cost."""
    verdict = Verdict(JobState.READY, counted=False)
    record = record_failure(RuntimeError("the run was stopped"))

    def write(session: Session) -> None:
        queue.give_up(session, claim, verdict, record)
        lanes.ended(session, claim)

    with contextlib.suppress(Fenced, Transient):
        await desk.transact(write)
