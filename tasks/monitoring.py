"""Tasks of the monitor: what events missed, and what died without a word."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from prefect import task
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.events import emit_event
from prefect.events.filters import (
    EventFilter,
    EventNameFilter,
    EventOccurredFilter,
    EventResourceFilter,
)
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Crashed

from nightdesk.config import load_settings
from nightdesk.connection import open_database
from tasks.dead_letters import run_url
from tasks.retrying import RETRIES

#: The name of the automation that ends runs without a heartbeat.
ZOMBIES = "nightdesk: end zombie runs"
ACTION_FAILED = "nightdesk.automation.failed"
#: A run without a heartbeat for so many of its intervals has died.
HEARTBEATS_MISSED = 3
_LOOK_BACK = timedelta(minutes=30)


@task(name="sweep dead letters", persist_result=False, **RETRIES)
def sweep_dead_letters(grace_s: float) -> int:
    """Route failed jobs that no event brought within the grace; returns how many."""
    from nightdesk.desk.dead_letters import sweep_failed

    with open_database(load_settings(), upgrade=False) as database, database.transaction() as session:
        return sweep_failed(session, grace_s, layer="sweep", url_of_run=run_url)


@task(name="rescue leases", persist_result=False, **RETRIES)
def rescue_leases() -> int:
    """Take back jobs whose lease ran out, and write off calls past their deadline; returns how many jobs."""
    from nightdesk.desk.queue import rescue_expired
    from nightdesk.llm.calls import write_off_overdue

    with open_database(load_settings(), upgrade=False) as database, database.transaction() as session:
        write_off_overdue(session)
        return len(rescue_expired(session))


@task(name="end zombie runs", persist_result=False, **RETRIES)
async def end_zombie_runs(pending_s: float) -> list[str]:
    """Mark as crashed the runs whose process is gone: no heartbeat, or never begun. Returns their ids."""
    ended = []
    now = _database_time()
    async with get_client() as client:
        for run in await unfinished_runs(client):
            if str(run.id) != str(flow_run.id) and (why := await _dead(client, run, now, pending_s)):
                await client.set_flow_run_state(run.id, Crashed(message=why), force=True)
                ended.append(str(run.id))
    return ended


async def unfinished_runs(client: PrefectClient) -> list[FlowRun]:
    """The runs of Nightdesk that have been given to a worker and have not ended."""
    wanted = FlowRunFilter(
        tags=FlowRunFilterTags(all_=["nightdesk"]),
        state=FlowRunFilterState(
            type=FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
        ),
    )
    return await client.read_flow_runs(flow_run_filter=wanted, limit=200)


def _database_time() -> datetime:
    from nightdesk.db import now

    with open_database(load_settings(), upgrade=False) as database, database.reading() as session:
        return now(session)


async def _dead(client: PrefectClient, run: FlowRun, now: datetime, pending_s: float) -> str | None:
    """Why a run counts as dead; None if it may live.

    `now` is our database's, the run's times are the Prefect server's. If the two differ, a run may be
    ended that lives: that costs a tick and nothing more, since claims are fenced.
    """
    assert run.state is not None
    age = now - run.state.timestamp
    if run.state.type is StateType.PENDING:
        if age > timedelta(seconds=pending_s):
            return f"it was pending for {age.total_seconds():.0f} s: its worker is gone"
        return None
    frequency_s = get_current_settings().flows.heartbeat_frequency
    if frequency_s is None or age < (silence := timedelta(seconds=HEARTBEATS_MISSED * frequency_s)):
        return None
    beats = await client.read_events(
        filter=EventFilter(
            event=EventNameFilter(name=["prefect.flow-run.heartbeat"]),
            resource=EventResourceFilter(id=[f"prefect.flow-run.{run.id}"]),
            occurred=EventOccurredFilter.model_validate({"since": now - silence}),
        ),
        limit=1,
    )
    return None if beats.events else f"it gave no heartbeat for {silence.total_seconds():.0f} s"


@task(name="take back dead runs", persist_result=False, **RETRIES)
async def take_back_dead_runs() -> int:
    """Take back what runs hold that have ended without giving it back; returns how many jobs."""
    from nightdesk.desk.dead_runs import holders, take_back_run

    with open_database(load_settings(), upgrade=False) as database:
        with database.reading() as session:
            runs = [run for run in holders(session) if _is_uuid(run)]
        ended = await _ended(runs) if runs else []
        taken = 0
        for run in ended:
            with database.transaction() as session:
                taken += len(take_back_run(session, run))
    return taken


async def _ended(runs: list[str]) -> list[str]:
    async with get_client() as client:
        found = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[uuid.UUID(run) for run in runs])),
            limit=200,
        )
    return [str(run.id) for run in found if run.state is not None and run.state.is_final()]


def _is_uuid(run: str) -> bool:
    try:
        uuid.UUID(run)
    except ValueError:
        return False
    return True


@task(name="report failed actions", persist_result=False, **RETRIES)
async def report_failed_actions() -> int:
    """Say with an event of ours that an automation's action failed: Prefect itself only records it.

    The event's id follows from that of the failure, so that saying it again adds nothing.
    """
    async with get_client() as client:
        failures = await client.read_events(
            filter=EventFilter(
                event=EventNameFilter(name=["prefect.automation.action.failed"]),
                occurred=EventOccurredFilter.model_validate({"since": _database_time() - _LOOK_BACK}),
            ),
            limit=50,
        )
    # The zombie automation fires for runs that have ended meanwhile, and is refused: that is its nature.
    told = [one for one in failures.events if one.resource.get("prefect.resource.name") != ZOMBIES]
    for failure in told:
        emit_event(
            ACTION_FAILED,
            id=uuid.uuid5(failure.id, ACTION_FAILED),
            resource={
                "prefect.resource.id": "nightdesk.automations",
                "prefect.resource.name": failure.resource.get("prefect.resource.name") or "an automation",
            },
            payload={"automation": dict(failure.resource.items()), "said": failure.payload},
        )
    return len(told)
