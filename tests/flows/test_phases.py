"""A run of a phase: it claims, works in task runs, and ends as what it was."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State

from flows.dead_letter import dead_letter
from flows.draft import draft
from flows.optimize import optimize
from flows.outline import outline
from flows.publish import publish
from flows.research import research
from nightdesk.db import Database
from nightdesk.insights import articles, letters
from nightdesk.sandbox import SandboxProcess, read_journal
from nightdesk.states import ArticleState
from tasks.tick import PHASE_FAILED
from tests.flows.conftest import HOME
from tests.flows.scenes import events, eventually, execute, flow_run_of, task_runs_of
from tests.integration.desk_fixtures import add_articles, scalar

pytestmark = pytest.mark.timeout(180)


async def test_a_tick_with_nothing_to_do_ends_idle(desk_environment: Database) -> None:
    state = await research(return_state=True)
    assert (state.type.value, state.name) == ("COMPLETED", "Idle")


async def test_five_ticks_publish_articles_and_show_what_they_did(desk_environment: Database) -> None:
    add_articles(desk_environment, "Starting a compost heap", "Watering tomatoes in summer")
    states = [await phase(return_state=True) for phase in (research, outline, draft, optimize, publish)]
    assert [state.message for state in states] == ["2 done"] * 5
    with desk_environment.reading() as session:
        assert {one.state for one in articles(session)} == {ArticleState.PUBLISHED}
    run = await flow_run_of(states[2])
    assert run.name == "draft · 2 articles"
    names = {task.name for task in await task_runs_of(run)}
    assert {"starting-a-compost-heap", "watering-tomatoes-in-summer"} < names
    async with get_client() as client:
        (artifact,) = [one for one in await client.read_artifacts() if one.flow_run_id == run.id]
    assert artifact.key == "tick-draft"
    assert "| starting-a-compost-heap |" in str(artifact.data)


async def test_a_failed_job_fails_its_run_after_its_neighbours_are_done(desk_environment: Database) -> None:
    add_articles(desk_environment, "Unacceptable demands", "Starting a compost heap")
    state = await research(return_state=True)
    assert state.is_failed()
    assert state.message == "1 done, 1 failed: unacceptable-demands"
    event = await eventually(lambda: find_event(PHASE_FAILED, state))
    assert event.payload["flow_run_id"] == str(state.state_details.flow_run_id)
    assert event.payload["articles"] == ["unacceptable-demands"]


async def test_the_dead_letter_run_routes_what_failed_once_with_its_context(
    desk_environment: Database,
) -> None:
    add_articles(desk_environment, "Unacceptable demands")
    failed = await research(return_state=True)
    run = failed.state_details.flow_run_id
    first = dead_letter(run, "automation", return_state=True)
    second = dead_letter(run, "event", return_state=True)
    assert (first.message, second.message) == (
        "dead letters: 1, jobs taken back: 0",
        "dead letters: 0, jobs taken back: 0",
    )
    with desk_environment.reading() as session:
        (letter,) = letters(session)
    assert letter.layer == "automation"
    assert letter.run_url == f"{os.environ['PREFECT_UI_URL']}/runs/flow-run/{run}"
    assert "this prompt is refused" in letter.message


async def test_transient_errors_are_retried_by_prefect_within_the_attempt(desk_environment: Database) -> None:
    add_articles(desk_environment, "Overloaded circuits")
    state = await research(return_state=True)
    assert state.is_completed(), state.message
    (generate,) = [
        task for task in await task_runs_of(await flow_run_of(state)) if task.name == "overloaded-circuits"
    ]
    assert generate.run_count == 3
    assert scalar(desk_environment, "SELECT attempts FROM nightdesk.jobs WHERE phase = 'research'") == 1


async def test_a_stored_answer_is_used_again_and_a_lost_cache_costs_nothing(
    desk_environment: Database, provider: SandboxProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(desk_environment, "Keeping knives sharp")
    before = billed(provider)
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr("nightdesk.desk.work.finish_writing", _killed)
            state = await research(return_state=True)
        assert state.is_failed()
        give_back(desk_environment)
        assert billed(provider) == before + 1
        for stored in (HOME / "results").glob("nightdesk-*"):
            stored.write_bytes(stored.read_bytes()[:20])
    state = await research(return_state=True)
    assert state.is_completed(), state.message
    assert billed(provider) == before + 1


async def test_the_second_try_shows_the_answer_as_cached(
    desk_environment: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(desk_environment, "Storing potatoes")
    with monkeypatch.context() as patched:
        patched.setattr("nightdesk.desk.work.finish_writing", _killed)
        await research(return_state=True)
    give_back(desk_environment)
    state = await research(return_state=True)
    assert state.is_completed(), state.message
    tasks = await task_runs_of(await flow_run_of(state))
    assert "Cached" in {task.state_name for task in tasks if task.name == "storing-potatoes"}


async def test_a_run_that_is_told_to_stop_gives_back_its_jobs_and_is_not_red(
    desk_environment: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(desk_environment, "Starting a compost heap")

    async def never(*_: Any) -> None:
        asyncio.get_running_loop().call_later(0.5, os.kill, os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

    monkeypatch.setattr("nightdesk.desk.work.answer", never)
    state = await research(return_state=True)
    assert (state.type.value, state.name) == ("COMPLETED", "Stopped")
    row = scalar(desk_environment, "SELECT state || attempts FROM nightdesk.jobs WHERE phase = 'research'")
    assert row == "ready0"


async def test_a_model_without_a_price_is_refused_before_anything_is_claimed(
    desk_environment: Database,
) -> None:
    add_articles(desk_environment, "Starting a compost heap")
    state = await research(model="gpt-6.2-sol", return_state=True)
    assert state.is_failed()
    assert "price" in (state.message or "")
    assert scalar(desk_environment, "SELECT claim_no FROM nightdesk.jobs WHERE phase = 'research'") == 0


async def test_a_prompt_and_a_model_can_be_pinned_by_parameter(desk_environment: Database) -> None:
    add_articles(desk_environment, "Starting a compost heap")
    state = await research(model="claude-sonnet-5-5", prompt=1, return_state=True)
    assert state.is_completed(), state.message
    brief = scalar(desk_environment, "SELECT model || ' ' || prompt_version FROM nightdesk.briefs")
    assert str(brief).startswith("claude-sonnet-5-5 research/1@")


def _killed(*_: Any) -> None:
    raise RuntimeError("the process ends here")


def give_back(database: Database) -> None:
    """As if the run that failed had been killed instead."""
    execute(database, "UPDATE nightdesk.jobs SET state = 'ready', locked_by = NULL WHERE state = 'failed'")


def billed(provider: SandboxProcess) -> int:
    return sum(1 for entry in read_journal(provider.options.journal) if entry.billed_usd > 0)


async def find_event(name: str, state: State[Any]) -> Any:
    mine = str(state.state_details.flow_run_id)
    return next((one for one in await events(name) if one.payload.get("flow_run_id") == mine), None)
