"""Tasks of publish. What they need is imported when one runs, never for an idle tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefect import task

from tasks.retrying import RETRIES

if TYPE_CHECKING:
    from nightdesk.models.phase_outputs import RevisionRow
    from nightdesk.publishing.port import Placement
    from tasks.job import JobAtWork


@task(name="judge", task_run_name="gate for {job.name}", persist_result=False, **RETRIES)
async def judge(job: JobAtWork) -> RevisionRow | None:
    """The revision that passed the quality gate; None if it was sent back to be repaired."""
    from nightdesk.desk import work

    return await work.judge(job.desk, job.claim)


@task(name="place", task_run_name="{job.name}", persist_result=False, **RETRIES)
async def place(job: JobAtWork, revision: RevisionRow) -> Placement:
    """Make the page, or find it and bring it up to date, under the site's lease."""
    from nightdesk.desk import work

    return await work.retrying(job.desk, lambda: work.place(job.desk, job.claim, revision), delays_s=())


@task(name="prove", task_run_name="proof of {job.name}", persist_result=False, **RETRIES)
async def prove(job: JobAtWork, placement: Placement) -> None:
    """See the live page as a stranger does."""
    from nightdesk.desk import work

    await work.prove(job.desk, job.claim, placement)


@task(name="conclude", task_run_name="finish {job.name}", persist_result=False, **RETRIES)
async def conclude(job: JobAtWork) -> None:
    """Record that the page is proven. Never cached."""
    from nightdesk.desk import work

    await work.conclude(job.desk, job.claim)
