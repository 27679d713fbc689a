"""Budgets edited in the Prefect UI and on the command line: one truth, and the last good version holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import BlockDocumentUpdate

from blocks.budget import Budget
from flows.monitor import monitor
from flows.research import research
from nightdesk.db import Database
from nightdesk.spend import budgets
from tasks.budgets import BUDGET_UNUSABLE, mirror_budgets
from tasks.tick import GATE_FAILED
from tests.flows.conftest import PrefectServer
from tests.flows.scenes import events, eventually
from tests.integration.desk_fixtures import add_articles
from tests.integration.money_fixtures import count, execute, set_budget, spend

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def blocks(desk_environment: Database) -> AsyncIterator[Database]:
    """A server with the block type and without documents of it."""
    async with get_client() as client:
        await Budget.aregister_type_and_schema(client=client)
        yield desk_environment
        for document in await client.read_block_documents_by_type("budget"):
            await client.delete_block_document(document.id)


def cap(database: Database, name: str = "fleet") -> Decimal | None:
    with database.reading() as session:
        found = {one.budget.name: one.budget.cap_usd for one in budgets.in_force(session)}
    return found.get(name)


async def edit(name: str, change: dict[str, Any], without: str = "") -> None:
    """What somebody does in the UI."""
    async with get_client() as client:
        document = await client.read_block_document_by_name(name, "budget")
        data = {key: value for key, value in (document.data | change).items() if key != without}
        await client.update_block_document(
            document.id, BlockDocumentUpdate(data=data, merge_existing_data=False)
        )


async def said(budget: str) -> list[str]:
    return [one.payload["why"] for one in await events(BUDGET_UNUSABLE) if one.resource.name == budget]


async def test_a_block_made_or_edited_in_the_ui_is_in_force_from_the_next_tick(blocks: Database) -> None:
    add_articles(blocks, "Starting a compost heap")
    await Budget(cap_usd=Decimal("0.5")).asave("fleet")
    state = await research(return_state=True)
    assert state.name == "Idle"
    assert cap(blocks) == Decimal("0.5")
    await edit("fleet", {"cap_usd": "50"})
    state = await research(return_state=True)
    assert state.message == "1 done"
    assert cap(blocks) == 50


async def test_what_the_command_line_sets_is_written_into_the_block_and_not_undone_by_it(
    blocks: Database,
) -> None:
    set_budget(blocks, 100)
    await mirror_budgets(blocks)
    set_budget(blocks, 200)
    await mirror_budgets(blocks)
    await mirror_budgets(blocks)
    assert cap(blocks) == 200
    assert (await Budget.aload("fleet")).cap_usd == 200
    assert count(blocks, "budget_policies") == 2


async def test_what_is_set_while_the_block_is_written_reaches_it_at_the_next_tick(
    blocks: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_budget(blocks, 100)
    save = Budget.asave

    async def meanwhile(self: Budget, *given: Any, **named: Any) -> Any:
        monkeypatch.setattr(Budget, "asave", save)
        set_budget(blocks, 200)
        return await save(self, *given, **named)

    monkeypatch.setattr(Budget, "asave", meanwhile)
    await mirror_budgets(blocks)
    assert (await Budget.aload("fleet")).cap_usd == 100
    await mirror_budgets(blocks)
    assert (await Budget.aload("fleet")).cap_usd == 200
    assert cap(blocks) == 200


@pytest.mark.parametrize(
    ("change", "without", "why"),
    [
        ({"cap_usd": "lots"}, "", "cap_usd"),
        ({"cap_usd": "NaN"}, "", "finite"),
        ({"cap_usd": -5}, "", "greater than 0"),
        ({"limit_usd": 5}, "cap_usd", "cap_usd: missing"),
        ({"limit_usd": 5}, "", "limit_usd"),
        ({}, "warn_ratio", "warn_ratio: missing"),
        ({"time_zone": "Mars/Olympus", "window": "day", "window_s": None}, "", "no time zone"),
    ],
)
async def test_a_block_that_makes_no_sense_leaves_the_last_good_version_in_force_and_says_so(
    blocks: Database, change: dict[str, Any], without: str, why: str
) -> None:
    name = f"fleet-{abs(hash((str(change), without)))}"
    set_budget(blocks, 100, name)
    await mirror_budgets(blocks)
    await edit(name, change, without)
    for _ in range(2):
        await mirror_budgets(blocks)
    assert cap(blocks, name) == 100
    (told,) = await eventually(lambda: said(name))
    assert why in told


async def test_a_block_that_was_deleted_takes_no_budget_with_it(blocks: Database) -> None:
    set_budget(blocks, 100, "deleted")
    await mirror_budgets(blocks)
    async with get_client() as client:
        document = await client.read_block_document_by_name("deleted", "budget")
        await client.delete_block_document(document.id)
    await mirror_budgets(blocks)
    assert cap(blocks, "deleted") == 100
    assert await eventually(lambda: said("deleted"))


async def test_without_prefect_the_budgets_hold(
    desk_environment: Database, prefect_server: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ConnectionError("no server")

    set_budget(desk_environment, 100)
    monkeypatch.setattr("tasks.budgets.get_client", broken)
    await mirror_budgets(desk_environment)
    assert cap(desk_environment) == 100


async def test_each_change_of_a_budgets_state_is_told_once(blocks: Database) -> None:
    set_budget(blocks, 10, "told-once")
    spend(blocks, 9)
    for _ in range(2):
        assert (await monitor(return_state=True)).is_completed()

    async def warned() -> list[Any]:
        return [one for one in await events("nightdesk.budget.warn") if one.resource.name == "told-once"]

    (event,) = await eventually(warned)
    assert Decimal(event.payload["spent_usd"]) == 9


async def test_a_tick_goes_on_without_a_gate_that_is_out_of_order_and_says_so(blocks: Database) -> None:
    add_articles(blocks, "Starting a compost heap")
    set_budget(blocks, 1)
    execute(blocks, "ALTER TABLE nightdesk.budget_decisions RENAME TO lost")
    state = await research(return_state=True)
    assert state.message == "1 done"
    mine = str(state.state_details.flow_run_id)

    async def told() -> list[Any]:
        return [one for one in await events(GATE_FAILED) if one.payload["flow_run_id"] == mine]

    (event,) = await eventually(told)
    assert "budget_decisions" in event.payload["why"]
