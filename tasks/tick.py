"""A run of a phase's deployment: one tick of the desk, its jobs as task runs, its outcome as a state."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.events import emit_event
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from nightdesk.config import load_settings
from nightdesk.desk.idle import is_there_work
from nightdesk.states import Phase

if TYPE_CHECKING:
    from nightdesk.desk.desk import Desk
    from nightdesk.desk.queue import Pin
    from nightdesk.desk.tick import Tick, TickReport
    from tasks.job import JobAtWork

#: Emitted by a tick that ends as failed; an automation runs the dead-letter deployment on it.
PHASE_FAILED = "nightdesk.phase.failed"
#: Emitted by a tick that had to settle without the budgets' gate what may begin.
GATE_FAILED = "nightdesk.budget-gate.failed"


@dataclass(frozen=True, slots=True)
class TickOptions:
    """The parameters of a phase's deployment."""

    batch: int
    model: str | None = None  #: instead of the one that the settings name
    prompt: int | None = None  #: a number instead of the highest
    lease_s: float | None = None  #: instead of the one that the settings name
    refill_s: float = 480.0  #: new jobs are claimed until so long after the start
    grace_s: float = 120.0  #: a failed job that nobody routed for so long is routed by this tick


async def run_phase(
    phase: Phase, work: Callable[[JobAtWork], Awaitable[None]], options: TickOptions
) -> State[Any]:
    """Do one tick; the state in which the flow run ends.

    A tick with nothing to do asks the database once and imports no SDK.
    """
    settings = load_settings()
    if settings.database_url is not None and not await asyncio.to_thread(
        is_there_work, settings.database_url.get_secret_value(), phase
    ):
        return Completed(name="Idle", message=f"nothing to {phase}")
    from nightdesk.connection import open_database
    from tasks.budgets import mirror_budgets, tell_transitions
    from tasks.context import opened_desk

    with open_database(settings, upgrade=False) as database:
        await mirror_budgets(database)
        async with opened_desk(database, lease_s=options.lease_s) as desk:
            report = await _tick(desk, phase, work, options)
        tell_transitions(database)
    if report.gate_error is not None:
        emit_event(
            GATE_FAILED,
            resource={
                "prefect.resource.id": "nightdesk.budget-gate",
                "prefect.resource.name": "the budgets' gate",
            },
            payload={"flow_run_id": str(flow_run.id), "why": report.gate_error},
        )
    if not report.outcomes:
        return Completed(name="Idle", message=f"nothing to {phase} now")
    from tasks.summary import summarise

    await summarise(report)
    return _conclude(report)


async def _tick(
    desk: Desk, phase: Phase, work: Callable[[JobAtWork], Awaitable[None]], options: TickOptions
) -> TickReport:
    from nightdesk.desk.tick import Tick, TickPlan
    from tasks.dead_letters import run_url
    from tasks.job import JobAtWork

    async def work_on(desk: Desk, claim: Any) -> None:
        await work(JobAtWork(desk, claim, tick.name(claim)))

    tick = Tick(
        desk,
        TickPlan(
            phase=phase,
            run=str(flow_run.id),
            pin=_pin(desk, phase, options),
            batch=options.batch,
            refill_s=options.refill_s,
            grace_s=options.grace_s,
            url_of_run=run_url,
        ),
        work_on,
        on_claim=lambda articles: _rename(phase, articles),
    )
    with _stopped_by_sigterm(tick):
        return await tick.run()


def _pin(desk: Desk, phase: Phase, options: TickOptions) -> Pin:
    """What the tick's jobs are done with.

    Raises:
        ConfigError: if the parameter names a model without a price, or a prompt that is not there.
    """
    from nightdesk.desk.prompting import load_prompt
    from nightdesk.spend.pricing import require_price

    pin = desk.pin(phase)
    if options.model is not None and pin.provider is not None:
        require_price(pin.provider, options.model)
        pin = replace(pin, model=options.model)
    if options.prompt is not None and pin.prompt_version is not None:
        pin = replace(pin, prompt_version=load_prompt(phase, options.prompt).version)
    return pin


async def _rename(phase: Phase, articles: int) -> None:
    name = f"{phase} · {articles} article{'s' if articles != 1 else ''}"
    # A name is an ornament: no work is stopped because it could not be given.
    with suppress(Exception):
        async with get_client() as client:
            await client.update_flow_run(flow_run.id, name=name)


@contextmanager
def _stopped_by_sigterm(tick: Tick) -> Iterator[None]:
    """A worker that is stopped asks its runs to end: they give back what they hold."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)
    try:
        loop.add_signal_handler(signal.SIGTERM, tick.stop)
    except (RuntimeError, ValueError):  # not in the main thread: somebody calls the flow from code
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


def _conclude(report: TickReport) -> State[Any]:
    said = (
        ", ".join(f"{count} {state}" for state, count in sorted(report.counts.items())) or "nothing claimed"
    )
    if report.failed:
        emit_event(
            PHASE_FAILED,
            resource={
                "prefect.resource.id": f"nightdesk.phase.{report.phase}",
                "prefect.resource.name": str(report.phase),
            },
            payload={
                "flow_run_id": str(flow_run.id),
                "jobs": [one.claim.job_id for one in report.failed],
                "articles": [one.name for one in report.failed],
            },
        )
        return Failed(message=f"{said}: {', '.join(one.name for one in report.failed)}")
    if report.stopped:
        return Completed(name="Stopped", message=said)
    return Completed(message=said)
