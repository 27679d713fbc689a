"""Tasks of the phases that ask a model. What they need is imported when one runs, never for an idle tick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefect import task

from tasks.retrying import RETRIES

if TYPE_CHECKING:
    from nightdesk.desk.generation import Question
    from nightdesk.desk.outputs import Output
    from tasks.job import JobAtWork


@task(name="gather sources", task_run_name="sources of {job.name}", persist_result=False, **RETRIES)
async def gather_sources(job: JobAtWork) -> None:
    """Fetch and store what the topic names as its sources."""
    from nightdesk.desk import work

    await work.gather_sources(job.desk, job.claim)


@task(name="ask", task_run_name="input of {job.name}", persist_result=False, **RETRIES)
async def ask(job: JobAtWork) -> Question:
    """Read a job's typed input and its pinned prompt."""
    from nightdesk.desk import work

    return await work.ask(job.desk, job.claim)


async def question_key(job: JobAtWork, question: Question) -> str:
    """The key of the answer that is due: the call key and the number of the ask."""
    from nightdesk.desk import generation

    return await generation.due_key(job.desk.database, question)


def _cache_key(_context: Any, parameters: dict[str, Any]) -> str:
    return f"nightdesk-{parameters['key']}"


@task(
    name="generate",
    task_run_name="{job.name}",
    cache_key_fn=_cache_key,
    persist_result=True,
    result_serializer="json",
    **RETRIES,
)
async def generate(job: JobAtWork, question: Question, key: str) -> Output:
    """The model's usable answer, cached under its key.

    The cache spares work; what guarantees that an answer is bought once is its row in Postgres.
    """
    from nightdesk.desk import work

    return await work.retrying(job.desk, lambda: work.answer(job.desk, question), delays_s=())


@task(name="finish", task_run_name="finish {job.name}", persist_result=False, **RETRIES)
async def finish(job: JobAtWork, question: Question, output: Output) -> None:
    """Store the output, the next phase's job and the end of this one. Never cached."""
    from nightdesk.desk import work

    await work.finish(job.desk, question, output)
