"""One claimed job, from its input to its stored output, in steps that a scheduled flow makes tasks of.

    model phases   [gather_sources] → ask → generate → finish
    publish        judge → place → prove → conclude

Each step may be done again: it finds what an earlier try has stored or placed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sqlmodel import Session

from nightdesk.desk import queue, site_lease
from nightdesk.desk.desk import Desk
from nightdesk.desk.generation import Question, generate, prepare
from nightdesk.desk.outputs import Output
from nightdesk.desk.phases import MODEL_PHASES
from nightdesk.desk.phases import publish as publishing
from nightdesk.desk.phases.model_phase import Inputs
from nightdesk.desk.phases.publish import SentBack
from nightdesk.desk.phases.research import store_sources, unread_urls
from nightdesk.desk.policy import RETRY_DELAYS_S, retry_after_s
from nightdesk.desk.queue import Claim
from nightdesk.desk.site_lease import SiteBusy, SiteClaim
from nightdesk.errors import Lane, LaneKind, ToldToWait, Transient
from nightdesk.models.phase_outputs import RevisionRow
from nightdesk.publishing.port import Page, Placement
from nightdesk.research import FetchedSource
from nightdesk.states import Phase

T = TypeVar("T")

#: When the live page is looked at after publishing; caches and replicas may lag behind.
VERIFY_AFTER_S = (0.0, 1.0, 4.0, 15.0)
SITE_POLL_S = 0.1
SITE_PATIENCE_S = 30.0


async def work(desk: Desk, claim: Claim) -> None:
    """Do a claimed job and store its output, each step tried again as the policy's table says.

    Raises:
        JobError, SiteBusy: for the caller to give up the claim by the policy.
        Fenced: if the claim ended meanwhile; there is nothing left to do.
    """
    if claim.phase is Phase.PUBLISH:
        await _publish(desk, claim)
    else:
        await _write(desk, claim)


async def _write(desk: Desk, claim: Claim) -> None:
    if claim.phase is Phase.RESEARCH:
        await gather_sources(desk, claim)
    question = await retrying(desk, lambda: ask(desk, claim))
    output = await retrying(desk, lambda: answer(desk, question))
    await finish(desk, question, output)


async def _publish(desk: Desk, claim: Claim) -> None:
    revision = await judge(desk, claim)
    if revision is not None:
        placement = await retrying(desk, lambda: place(desk, claim, revision))
        await prove(desk, claim, placement)
        await conclude(desk, claim)


async def retrying(
    desk: Desk, step: Callable[[], Awaitable[T]], delays_s: Sequence[float] = RETRY_DELAYS_S
) -> T:
    """A step, tried again as the policy's table says for an error within one attempt.

    `delays_s`: waits before the retries for transient errors; none, if the caller makes them.
    """
    retries = sleeps = 0
    while True:
        try:
            return await step()
        except Exception as error:
            wait_s = retry_after_s(error, retries, sleeps, desk.world.random(), delays_s)
            if wait_s is None:
                raise
            told = isinstance(error, ToldToWait)
            retries, sleeps = retries + (not told), sleeps + told
        await desk.world.sleep(wait_s)


# ── the steps of the phases that ask a model ─────────────────────────────────────────────────────


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


async def ask(desk: Desk, claim: Claim) -> Question:
    """Read the typed input and the pinned prompt."""
    return await asyncio.to_thread(prepare, desk.database, claim, desk.deadline_s)


async def answer(desk: Desk, question: Question) -> Output:
    """The model's usable answer, bought or found stored."""
    return await generate(desk.database, desk.client, desk.world, question)


async def finish(desk: Desk, question: Question, output: Output) -> None:
    """Store the output, the next phase's job and the end of this one, in one transaction."""
    await desk.transact(
        lambda session: finish_writing(session, desk, question.claim, question.inputs, output)
    )


def finish_writing(session: Session, desk: Desk, claim: Claim, inputs: Inputs, output: Output) -> None:
    """Output, next job and the end of this one, in one transaction."""
    MODEL_PHASES[claim.phase].save(session, claim, inputs, output)
    following = claim.phase.following
    assert following is not None
    queue.add_job(session, claim.article_id, following, claim.round, desk.limits)
    queue.finish(session, claim)


# ── the steps of publish ─────────────────────────────────────────────────────────────────────────


async def judge(desk: Desk, claim: Claim) -> RevisionRow | None:
    """The revision, if the quality gate lets it pass; None if it was sent back to be repaired.

    Raises:
        NeedsPerson: if the gate holds it for a person.
    """
    judged = await desk.transact(lambda session: publishing.judge(session, claim, desk.limits, desk.lease_s))
    if isinstance(judged, SentBack):
        return None
    publishing.require_passed(judged)
    return judged


async def place(desk: Desk, claim: Claim, revision: RevisionRow) -> Placement:
    """Make the page, under the site's lease. A second call finds the page and brings it up to date."""
    site = desk.site(claim.site)
    holder = await _take_site(desk, claim)
    try:
        await site.preflight()
        page: Page = await desk.transact(
            lambda session: publishing.begin(session, claim, holder, revision, desk.lease_s)
        )
        placement: Placement = await site.publish(page)
        await desk.transact(
            lambda session: publishing.placed(session, claim, holder, placement, desk.lease_s)
        )
        return placement
    finally:
        await desk.transact(lambda session: site_lease.release(session, holder))


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


async def prove(desk: Desk, claim: Claim, placement: Placement) -> None:
    """Look at the live page as a stranger, several times if need be.

    Raises:
        Transient: if it is not proven to be live.
    """
    problem = ""
    for delay_s in VERIFY_AFTER_S:
        await desk.world.sleep(delay_s)
        seen = await desk.site(claim.site).verify(placement, claim.article_id)
        if seen.ok:
            return
        problem = f"{placement.url} is not proven to be live: {seen.problem}"
    raise Transient(problem, lane=Lane(LaneKind.SITE, claim.site))


async def conclude(desk: Desk, claim: Claim) -> None:
    """The page is proven: the job is done."""
    await desk.transact(lambda session: publishing.verified(session, claim))
