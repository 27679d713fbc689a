"""One claimed job, from its input to its stored output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlmodel import Session

from nightdesk.desk import queue, site_lease
from nightdesk.desk.desk import Desk
from nightdesk.desk.generation import generate, prepare
from nightdesk.desk.lanes import require_open
from nightdesk.desk.outputs import Output
from nightdesk.desk.phases import MODEL_PHASES
from nightdesk.desk.phases import publish as publishing
from nightdesk.desk.phases.model_phase import Inputs
from nightdesk.desk.phases.publish import SentBack
from nightdesk.desk.phases.research import store_sources, unread_urls
from nightdesk.desk.policy import retry_after_s
from nightdesk.desk.queue import Claim
from nightdesk.desk.site_lease import SiteBusy, SiteClaim
from nightdesk.errors import Lane, LaneKind, ToldToWait, Transient
from nightdesk.publishing.port import Page, Placement
from nightdesk.research import FetchedSource
from nightdesk.states import Phase

T = TypeVar("T")

#: When the live page is looked at after publishing; caches and replicas may lag behind.
VERIFY_AFTER_S = (0.0, 1.0, 4.0, 15.0)
SITE_POLL_S = 0.1
SITE_PATIENCE_S = 30.0


async def work(desk: Desk, claim: Claim) -> None:
    """Do a claimed job and store its output.

    Raises:
        JobError, Paused, SiteBusy: for the caller to give up the claim by the policy.
        Fenced: if the claim ended meanwhile; there is nothing left to do.
    """
    await desk.transact(
        lambda session: require_open(
            session,
            provider=claim.provider,
            site=claim.site if claim.phase is Phase.PUBLISH else None,
        )
    )
    if claim.phase is Phase.PUBLISH:
        await _publish(desk, claim)
    else:
        await _write(desk, claim)


async def retrying(desk: Desk, step: Callable[[], Awaitable[T]]) -> T:
    """A step, tried again as the policy's table says for an error within one attempt."""
    retries = sleeps = 0
    while True:
        try:
            return await step()
        except Exception as error:
            wait_s = retry_after_s(error, retries, sleeps, desk.world.random())
            if wait_s is None:
                raise
            told = isinstance(error, ToldToWait)
            retries, sleeps = retries + (not told), sleeps + told
        await desk.world.sleep(wait_s)


async def _write(desk: Desk, claim: Claim) -> None:
    if claim.phase is Phase.RESEARCH:
        await gather_sources(desk, claim)
    question = await retrying(desk, lambda: asyncio.to_thread(prepare, desk.database, claim, desk.deadline_s))
    output = await retrying(desk, lambda: generate(desk.database, desk.client, desk.world, question))
    await desk.transact(lambda session: finish_writing(session, desk, claim, question.inputs, output))


async def gather_sources(desk: Desk, claim: Claim) -> None:
    """Fetch and store the sources that are not stored yet; a bad one is stored with its error."""
    urls = await desk.transact(lambda session: unread_urls(session, claim.article_id))
    if urls:
        sources = await desk.reader.read(urls)
        await desk.transact(lambda session: _keep_sources(session, desk, claim, sources))


def _keep_sources(session: Session, desk: Desk, claim: Claim, sources: list[FetchedSource]) -> None:
    # Fenced: sources are part of the input, and a late one would change what was asked already.
    queue.renew(session, claim, desk.lease_s)
    store_sources(session, claim.article_id, sources)


def finish_writing(session: Session, desk: Desk, claim: Claim, inputs: Inputs, output: Output) -> None:
    """Output, next job and the end of this one, in one transaction."""
    MODEL_PHASES[claim.phase].save(session, claim, inputs, output)
    following = claim.phase.following
    assert following is not None
    queue.add_job(session, claim.article_id, following, claim.round, desk.limits)
    queue.finish(session, claim)


async def _publish(desk: Desk, claim: Claim) -> None:
    site = desk.site(claim.site)
    judged = await desk.transact(lambda session: publishing.judge(session, claim, desk.limits, desk.lease_s))
    if isinstance(judged, SentBack):
        return
    publishing.require_passed(judged)
    holder = await _take_site(desk, claim)
    try:
        await retrying(desk, site.preflight)
        page: Page = await desk.transact(
            lambda session: publishing.begin(session, claim, holder, judged, desk.lease_s)
        )
        placement: Placement = await retrying(desk, lambda: site.publish(page))
        await desk.transact(
            lambda session: publishing.placed(session, claim, holder, placement, desk.lease_s)
        )
    finally:
        await desk.transact(lambda session: site_lease.release(session, holder))
    await _verify(desk, claim, placement)
    await desk.transact(lambda session: publishing.verified(session, claim))


async def _take_site(desk: Desk, claim: Claim) -> SiteClaim:
    waited_s = 0.0
    name = f"{claim.run}/{claim.job_id}"
    while waited_s < SITE_PATIENCE_S:
        taken = await desk.transact(lambda session: site_lease.take(session, claim.site, name))
        if taken is not None:
            return taken
        await desk.world.sleep(SITE_POLL_S)
        waited_s += SITE_POLL_S
    raise SiteBusy(f"another worker has been publishing to {claim.site} for {SITE_PATIENCE_S:g} s")


async def _verify(desk: Desk, claim: Claim, placement: Placement) -> None:
    problem = ""
    for delay_s in VERIFY_AFTER_S:
        await desk.world.sleep(delay_s)
        seen = await desk.site(claim.site).verify(placement, claim.article_id)
        if seen.ok:
            return
        problem = f"{placement.url} is not proven to be live: {seen.problem}"
    raise Transient(problem, lane=Lane(LaneKind.SITE, claim.site))
