"""Block types and documents. A document says what the settings name; what they leave open stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect.blocks.core import Block
from prefect.client.orchestration import PrefectClient
from pydantic import BaseModel

from blocks.budget import Budget
from blocks.providers import AnthropicProvider, OpenAIProvider
from blocks.settings import DOCUMENT, PROVIDERS, documents
from blocks.sites import StaticSite
from nightdesk.config import Settings

BLOCKS: tuple[type[Block], ...] = (AnthropicProvider, OpenAIProvider, StaticSite, Budget)


async def write_blocks(client: PrefectClient, settings: Settings, tell: Callable[[str], None]) -> None:
    """Register the block types, and write one document per provider and per site of the settings.

    No key is copied out of the environment: a document gets one only from the settings themselves.
    """
    for kind in BLOCKS:
        await kind.aregister_type_and_schema(client=client)
    for kind in PROVIDERS:
        before = (await documents(kind)).get(DOCUMENT)
        await _write(client, kind, DOCUMENT, before, _named(getattr(settings, kind.provider)))
    sites = await documents(StaticSite)
    for name, site in settings.sites.items():
        await _write(client, StaticSite, name, sites.get(name), _named(site))
    tell(f"blocks: {', '.join(kind.get_block_type_slug() for kind in BLOCKS)}")


def _named(settings: BaseModel) -> dict[str, Any]:
    """The fields that differ from their defaults: what somebody has set."""
    values = {
        name: getattr(settings, name)
        for name, field in type(settings).model_fields.items()
        if name != "kind" and getattr(settings, name) != field.default
    }
    return {
        name: str(value) if name == "folder" and value is not None else value
        for name, value in values.items()
    }


async def _write(
    client: PrefectClient, kind: type[Block], name: str, before: Block | None, named: dict[str, Any]
) -> None:
    kept = {} if before is None else {field: getattr(before, field) for field in type(before).model_fields}
    wanted = kind(**(kept | named))
    if before is None or wanted.model_dump() != before.model_dump():
        await wanted.asave(name, overwrite=True, client=client)
