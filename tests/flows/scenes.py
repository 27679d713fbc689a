"""Reading what Prefect knows of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State, TaskRun
from prefect.events.filters import EventFilter, EventNameFilter
from sqlalchemy import text

from nightdesk.db import Database


async def flow_run_of(state: State[Any]) -> FlowRun:
    """The run that ended in a state."""
    async with get_client() as client:
        assert state.state_details.flow_run_id is not None
        return await client.read_flow_run(state.state_details.flow_run_id)


async def task_runs_of(run: FlowRun) -> list[TaskRun]:
    """The task runs of a run that has ended; the server learns of them a moment later."""

    async def read() -> list[TaskRun]:
        async with get_client() as client:
            found = await client.read_task_runs(
                flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])), limit=200
            )
        return found if found and all(task.state and task.state.is_final() for task in found) else []

    return await eventually(read)


async def start(deployment: str, state: State[Any] | None = None, **parameters: object) -> FlowRun:
    """A run of `flow/deployment` for the worker, asked for by hand or in another state."""
    async with get_client() as client:
        made = await client.read_deployment_by_name(deployment)
        return await client.create_flow_run_from_deployment(made.id, parameters=parameters, state=state)


async def ended(run: FlowRun, within_s: float = 90.0) -> State[Any]:
    """The state in which a run has ended."""

    async def state() -> State[Any] | None:
        async with get_client() as client:
            now = (await client.read_flow_run(run.id)).state
        return now if now is not None and now.is_final() else None

    return await eventually(state, within_s)  # type: ignore[no-any-return]


async def events(name: str) -> list[Any]:
    """The latest events of a name."""
    async with get_client() as client:
        page = await client.read_events(filter=EventFilter(event=EventNameFilter(name=[name])), limit=50)
    return list(page.events)


async def eventually(find: Callable[[], Awaitable[Any]], within_s: float = 15.0) -> Any:
    """What `find` finds, as soon as it finds something."""
    for _ in range(int(within_s / 0.3)):
        if found := await find():
            return found
        await asyncio.sleep(0.3)
    raise AssertionError("it did not come")


def execute(database: Database, statement: str, **values: object) -> None:
    """One statement in a transaction of its own."""
    with database.transaction() as session:
        session.connection().execute(text(statement), values)
