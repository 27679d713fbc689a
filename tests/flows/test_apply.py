"""Applying to a Prefect server: as often as one likes, nothing twice, nothing lost, no secret shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import BlockDocumentUpdate

from blocks.providers import AnthropicProvider
from blocks.settings import DOCUMENT, documents, with_blocks
from blocks.sites import StaticSite
from deployments.apply import apply
from deployments.definitions import definitions
from nightdesk.config import load_settings
from nightdesk.db import Database
from nightdesk.errors import ConfigError
from tests.flows.scenes import eventually

pytestmark = pytest.mark.timeout(240)


async def test_applying_twice_changes_nothing(desk_environment: Database) -> None:
    await apply(load_settings(), tell=silent)
    first = await registered()
    await apply(load_settings(), tell=silent)
    assert await registered() == first
    names = {one["name"] for one in definitions()["deployments"]}
    assert set(first["deployments"]) == names
    assert len(first["automations"]) == 3


async def test_what_was_edited_in_the_ui_is_kept_and_what_the_settings_name_is_not(
    desk_environment: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply(load_settings(), tell=silent)
    edited = (await documents(AnthropicProvider))[DOCUMENT]
    edited.max_in_flight = 3
    edited.base_url = "http://127.0.0.1:1"
    await edited.asave(DOCUMENT, overwrite=True)
    await apply(load_settings(), tell=silent)
    after = (await documents(AnthropicProvider))[DOCUMENT]
    assert after.max_in_flight == 3
    assert after.base_url == load_settings().anthropic.base_url
    async with get_client() as client:
        limit = await client.read_global_concurrency_limit_by_name("nightdesk-anthropic")
    assert limit.limit == 3


async def test_an_automation_that_was_switched_off_stays_off(desk_environment: Database) -> None:
    await apply(load_settings(), tell=silent)
    async with get_client() as client:
        (zombies,) = await client.read_automations_by_name(name="nightdesk: end zombie runs")
        await client.pause_automation(zombies.id)
        await apply(load_settings(), tell=silent)
        (after,) = await client.read_automations_by_name(name="nightdesk: end zombie runs")
        assert after.enabled is False
        await client.resume_automation(zombies.id)


async def test_no_secret_is_in_what_anybody_may_read(
    desk_environment: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = json.dumps({"api_key": "sk-very-secret"})
    monkeypatch.setenv("NIGHTDESK_ANTHROPIC", settings)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    await apply(load_settings(), tell=silent)
    async with get_client() as client:
        shown = [one.model_dump_json() for one in await client.read_deployments()]
        shown += [one.model_dump_json() for one in await client.read_automations()]
        shown += [one.model_dump_json() for one in await client.read_block_documents(include_secrets=False)]
    assert not [text for text in shown if "sk-very-secret" in text or "sk-from" in text]
    openai = await read_data("openai-provider", DOCUMENT)
    assert openai["api_key"] is None, "a key of the environment is not copied anywhere"


async def test_a_document_with_a_field_of_another_version_is_refused(desk_environment: Database) -> None:
    await apply(load_settings(), tell=silent)
    async with get_client() as client:
        document = await client.read_block_document_by_name("garden", "static-site")
        data = {**document.data, "titel": document.data["title"]}
        await client.update_block_document(
            document.id, BlockDocumentUpdate(data=data, merge_existing_data=False)
        )
        with pytest.raises(ConfigError, match=r"static-site/garden cannot be used \(titel"):
            await with_blocks(load_settings())
        await client.delete_block_document(document.id)


async def test_a_site_that_exists_only_as_a_block_is_a_site(desk_environment: Database) -> None:
    await apply(load_settings(), tell=silent)
    await StaticSite(title="The Kitchen").asave("kitchen", overwrite=True)
    settings = await with_blocks(load_settings())
    assert settings.sites["kitchen"].title == "The Kitchen"
    async with get_client() as client:
        document = await client.read_block_document_by_name("kitchen", "static-site")
        await client.delete_block_document(document.id)


async def test_the_dead_letter_run_is_made_by_the_event_of_a_failed_phase(desk_environment: Database) -> None:
    """The automation's template renders: a plain one fails on a UUID, and only an event says so."""
    from prefect.events import emit_event

    from tasks.tick import PHASE_FAILED

    await apply(load_settings(), tell=silent)
    run = "0f0e3a52-6a0e-4d7a-9d51-1f3bb1f8a001"
    emit_event(
        PHASE_FAILED,
        resource={"prefect.resource.id": "nightdesk.phase.draft"},
        payload={"flow_run_id": run},
    )

    async def made() -> Any:
        async with get_client() as client:
            found = await client.read_flow_runs(limit=50)
        return [one for one in found if one.parameters.get("flow_run_id") == run]

    (made_run,) = await eventually(made)
    assert made_run.parameters["layer"] == "event"


def silent(_line: str) -> None: ...


async def registered() -> dict[str, Any]:
    async with get_client() as client:
        deployments = await client.read_deployments()
        automations = await client.read_automations()
        limits = await client.read_global_concurrency_limits(limit=50, offset=0)
        blocks = await client.read_block_documents()
    return {
        "deployments": {
            one.name: [(one.id, s.id, s.slug, s.schedule.anchor_date) for s in one.schedules]  # type: ignore[union-attr]
            for one in deployments
        },
        "automations": sorted((str(one.id), one.name) for one in automations),
        "limits": sorted((one.name, one.limit) for one in limits),
        "blocks": sorted((str(one.id), one.name, str(one.data)) for one in blocks),
    }


async def read_data(kind: str, name: str) -> dict[str, Any]:
    async with get_client() as client:
        document = await client.read_block_document_by_name(name, kind, include_secrets=True)
    return dict(document.data)
