"""The deployment `publish`."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from nightdesk.states import Phase
from tasks.job import JobAtWork
from tasks.publishing import conclude, judge, place, prove
from tasks.tick import TickOptions, run_phase


@flow(name="publish")
async def publish(
    batch: int = 4,
    lease_s: float | None = None,
    refill_s: float = 240.0,
    grace_s: float = 120.0,
) -> State[Any]:
    """Put articles that pass the quality gate on their sites, and prove that they are live.

    Args:
        batch: jobs at a time; one site is published to by one job at a time.
        lease_s: how long a claim lasts without renewal; default: the settings'.
        refill_s: new jobs are claimed until so long after the start.
        grace_s: a failed job that nobody routed for so long is routed by this tick.
    """
    options = TickOptions(batch, lease_s=lease_s, refill_s=refill_s, grace_s=grace_s)
    return await run_phase(Phase.PUBLISH, _publish_one, options)


async def _publish_one(job: JobAtWork) -> None:
    revision = await judge(job)
    if revision is not None:
        placement = await place(job, revision)
        await prove(job, placement)
        await conclude(job)
