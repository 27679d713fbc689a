"""The deployment `research`."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from nightdesk.states import Phase
from tasks.job import JobAtWork
from tasks.tick import TickOptions, run_phase
from tasks.writing import ask, finish, gather_sources, generate, question_key


@flow(name="research")
async def research(
    batch: int = 4,
    model: str | None = None,
    prompt: int | None = None,
    lease_s: float | None = None,
    refill_s: float = 480.0,
    grace_s: float = 120.0,
) -> State[Any]:
    """Fetch each topic's sources and write a brief from them.

    Args:
        batch: jobs at a time.
        model: instead of the one that the settings name for this phase.
        prompt: the number of the prompt, instead of the highest.
        lease_s: how long a claim lasts without renewal; default: the settings'.
        refill_s: new jobs are claimed until so long after the start.
        grace_s: a failed job that nobody routed for so long is routed by this tick.
    """
    options = TickOptions(batch, model, prompt, lease_s, refill_s, grace_s)
    return await run_phase(Phase.RESEARCH, _research_one, options)


async def _research_one(job: JobAtWork) -> None:
    await gather_sources(job)
    question = await ask(job)
    output = await generate(job, question, await question_key(job, question))
    await finish(job, question, output)
