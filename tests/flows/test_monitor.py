"""The monitor brings what events missed, and ends what died without a word."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, StateType
from prefect.events import emit_event
from prefect.states import Failed, Pending, Running

from flows.monitor import monitor
from flows.research import research
from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.insights import letters
from nightdesk.states import Phase
from tasks.monitoring import ACTION_FAILED, ZOMBIES
from tests.flows.conftest import PrefectServer
from tests.flows.scenes import events, eventually, execute
from tests.integration.desk_fixtures import PIN, add_articles, scalar

pytestmark = pytest.mark.timeout(180)


async def test_failed_jobs_are_swept_after_the_grace_and_not_before(desk_environment: Database) -> None:
    add_articles(desk_environment, "Unacceptable demands")
    failed = await research(return_state=True)
    early = await monitor(grace_s=60, return_state=True)
    assert "dead letters swept: 0" in early.message
    late = await monitor(grace_s=0, return_state=True)
    assert "dead letters swept: 1" in late.message
    with desk_environment.reading() as session:
        (letter,) = letters(session)
    assert letter.layer == "sweep"
    assert letter.run_url.endswith(str(failed.state_details.flow_run_id))


async def test_a_job_held_by_a_run_that_has_ended_is_taken_back_at_once(desk_environment: Database) -> None:
    add_articles(desk_environment, "Starting a compost heap")
    run = await a_run(Failed(), tags=["nightdesk", "phase"])
    claim(desk_environment, run)
    state = await monitor(return_state=True)
    assert "jobs taken back: 1" in state.message
    assert scalar(desk_environment, "SELECT state FROM nightdesk.jobs") == "ready"
    assert scalar(desk_environment, "SELECT attempts FROM nightdesk.jobs") == 0


async def test_a_job_whose_lease_ran_out_is_rescued_whoever_held_it(desk_environment: Database) -> None:
    add_articles(desk_environment, "Starting a compost heap")
    claim(desk_environment, "a-run-of-the-command-line")
    execute(desk_environment, "UPDATE nightdesk.jobs SET locked_until = nightdesk.now() - interval '1 s'")
    await monitor()
    assert scalar(desk_environment, "SELECT state FROM nightdesk.jobs") == "ready"


async def test_a_run_without_a_heartbeat_is_ended_and_its_jobs_taken_back(
    desk_environment: Database, prefect_server: PrefectServer
) -> None:
    add_articles(desk_environment, "Starting a compost heap")
    run = await a_run(Running(), tags=["nightdesk", "phase"])
    prefect_server.age(run)
    claim(desk_environment, run)
    state = await monitor(return_state=True)
    assert "zombies ended: 1, jobs taken back: 1" in state.message
    async with get_client() as client:
        assert (await client.read_flow_run(uuid.UUID(run))).state.type is StateType.CRASHED


async def test_a_run_with_a_heartbeat_is_left_alone(
    desk_environment: Database, prefect_server: PrefectServer
) -> None:
    run = await a_run(Running(), tags=["nightdesk", "phase"])
    prefect_server.age(run)
    emit_event("prefect.flow-run.heartbeat", resource={"prefect.resource.id": f"prefect.flow-run.{run}"})

    async def arrived() -> bool:
        beats = await events("prefect.flow-run.heartbeat")
        return any(one.resource.id.endswith(run) for one in beats)

    await eventually(arrived)
    await monitor()
    async with get_client() as client:
        assert (await client.read_flow_run(uuid.UUID(run))).state.type is StateType.RUNNING
        await client.delete_flow_run(uuid.UUID(run))


async def test_a_run_that_stays_pending_is_ended_after_its_grace(
    desk_environment: Database, prefect_server: PrefectServer
) -> None:
    run = await a_run(Pending(), tags=["nightdesk", "phase"])
    prefect_server.age(run)
    await monitor(pending_s=7200)
    async with get_client() as client:
        assert (await client.read_flow_run(uuid.UUID(run))).state.type is StateType.PENDING
        await monitor(pending_s=60)
        assert (await client.read_flow_run(uuid.UUID(run))).state.type is StateType.CRASHED


async def test_a_failed_action_is_said_once_and_not_for_refused_zombies(desk_environment: Database) -> None:
    for name in ("nightdesk: some automation", ZOMBIES):
        emit_event(
            "prefect.automation.action.failed",
            resource={"prefect.resource.id": "prefect.automation.x", "prefect.resource.name": name},
            payload={"reason": "InvalidJinja()"},
        )

    async def both_arrived() -> bool:
        return len(await events("prefect.automation.action.failed")) >= 2

    await eventually(both_arrived)
    await monitor()
    await monitor()

    async def said() -> list[Any]:
        return await events(ACTION_FAILED)

    (event,) = await eventually(said)
    assert event.resource.name == "nightdesk: some automation"


async def a_run(state: State[Any], *, tags: list[str]) -> str:
    """A run as Prefect knows it, in a state that no process stands behind."""

    @flow(name="somebody")
    def somebody() -> None: ...

    async with get_client() as client:
        run = await client.create_flow_run(somebody, state=Pending(), tags=tags)
        await client.set_flow_run_state(run.id, state, force=True)
        return str(run.id)


def claim(database: Database, run: str) -> None:
    with database.transaction() as session:
        assert queue.claim(session, run=run, phase=Phase.RESEARCH, limit=1, lease_s=900, pin=PIN)
