"""From a failed run to its row in the dead letters, through the real automations and a real worker."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Crashed, Failed, Running, Scheduled

from deployments.apply import apply
from nightdesk.config import load_settings
from nightdesk.db import Database
from nightdesk.insights import LetterSummary, letters
from tests.flows.conftest import PrefectServer
from tests.flows.scenes import ended, eventually, execute, start
from tests.flows.test_monitor import a_run, claim
from tests.integration.desk_fixtures import add_articles, scalar

pytestmark = pytest.mark.timeout(300)


async def the_letter(database: Database, within_s: float = 60.0) -> LetterSummary:
    """The only dead letter, as soon as it is there; a second one would come within the seconds after."""

    async def found() -> list[LetterSummary]:
        with database.reading() as session:
            return letters(session)

    (letter,) = await eventually(found, within_s)
    return letter


def told(how: str, run_ended: State[Any], letter: LetterSummary) -> None:
    waited = (letter.created_at - run_ended.timestamp).total_seconds()
    print(f"\n{how}: dead letter {waited:.1f} s after the run ended, by {letter.layer}")  # noqa: T201


async def test_a_run_asked_for_by_hand_is_brought_by_an_automation_once(desk: Database) -> None:
    add_articles(desk, "Unacceptable demands")
    run = await start("research/research")
    state = await ended(run)
    letter = await the_letter(desk)
    told("by hand", state, letter)
    assert state.is_failed()
    assert letter.layer in ("automation", "event")
    assert str(letter.run_url).endswith(str(run.id))
    # Both automations fire for it: what the second one starts finds nothing to route.
    await eventually(lambda: routed_twice(run), within_s=60)
    assert scalar(desk, "SELECT count(*) FROM nightdesk.dead_letters") == 1


async def test_a_run_made_less_than_five_minutes_ahead_is_brought_although_its_state_is_held_back(
    desk: Database,
) -> None:
    add_articles(desk, "Unacceptable demands")
    run = await start(
        "research/research", Scheduled(scheduled_time=datetime.now(UTC) + timedelta(seconds=30))
    )
    state = await ended(run)
    letter = await the_letter(desk)
    told("scheduled ahead", state, letter)
    assert letter.layer in ("automation", "event")
    assert scalar(desk, "SELECT count(*) FROM nightdesk.dead_letters") == 1


async def test_without_automations_the_monitor_sweeps_and_their_return_adds_nothing(desk: Database) -> None:
    add_articles(desk, "Unacceptable demands")
    async with get_client() as client:
        for automation in await client.read_automations():
            await client.delete_automation(automation.id)
    await ended(await start("research/research"))
    assert (await ended(await start("monitor/monitor", grace_s=0))).is_completed()
    assert (await the_letter(desk)).layer == "sweep"
    await apply(load_settings(), tell=lambda _line: None)
    await ended(await start("monitor/monitor", grace_s=0))
    assert scalar(desk, "SELECT count(*) FROM nightdesk.dead_letters") == 1


async def test_a_server_that_is_killed_in_between_costs_no_letter_and_makes_no_second(
    desk: Database, prefect_server: PrefectServer
) -> None:
    add_articles(desk, "Unacceptable demands")
    run = await start("research/research")
    await eventually(lambda: failed_job(desk), within_s=60)
    prefect_server.kill()
    prefect_server.start()
    assert (await ended(run)).is_final()
    await ended(await start("monitor/monitor", grace_s=0))
    await the_letter(desk)
    assert scalar(desk, "SELECT count(*) FROM nightdesk.dead_letters") == 1


async def test_whatever_a_failed_state_is_called_its_jobs_are_brought(desk: Database) -> None:
    add_articles(desk, "Unacceptable demands", "Unacceptable wishes")
    for state in (Failed(name="Out of patience"), Failed(name="TimedOut")):
        run = await a_run_with_a_failed_job(desk)
        await end(run, state)
        await eventually(lambda run=run: letter_of(desk, run), within_s=60)


async def test_a_crashed_run_loses_what_it_held_as_well(desk: Database) -> None:
    add_articles(desk, "Unacceptable demands", "Starting a compost heap")
    run = await a_run_with_a_failed_job(desk)
    claim(desk, run)
    await end(run, Crashed())
    await eventually(lambda: letter_of(desk, run), within_s=60)
    assert scalar(desk, "SELECT state FROM nightdesk.jobs WHERE state <> 'dead'") == "ready"


async def a_run_with_a_failed_job(database: Database) -> str:
    run = await a_run(Running(), tags=["nightdesk", "phase"])
    claim(database, run)
    execute(
        database,
        "UPDATE nightdesk.jobs SET state = 'failed', locked_by = NULL WHERE locked_by = :run",
        run=run,
    )
    return run


async def end(run: str, state: State[Any]) -> None:
    async with get_client() as client:
        await client.set_flow_run_state(uuid.UUID(run), state, force=True)


async def letter_of(database: Database, run: str) -> bool:
    with database.reading() as session:
        found = [one.layer for one in letters(session) if str(one.run_url).endswith(run)]
    return found == ["automation"]


async def failed_job(database: Database) -> bool:
    return bool(scalar(database, "SELECT count(*) FROM nightdesk.jobs WHERE state = 'failed'"))


async def routed_twice(run: FlowRun) -> bool:
    async with get_client() as client:
        routes = [one for one in await client.read_flow_runs() if one.name == f"dead letters of {run.id}"]
    return [one.state.is_completed() for one in routes if one.state is not None] == [True, True]
