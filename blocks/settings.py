"""Settings with what the blocks say laid over them.

Documents are read through the plain API: loading a block makes an event each time.
"""

from __future__ import annotations

from typing import Any, TypeVar

from prefect.blocks.core import Block
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError
from pydantic import ValidationError

from blocks.providers import AnthropicProvider, ModelProvider, OpenAIProvider
from blocks.sites import StaticSite
from nightdesk.config import Settings
from nightdesk.errors import ConfigError
from nightdesk.validation import wrong_fields

BlockType = TypeVar("BlockType", bound=Block)

PROVIDERS: tuple[type[ModelProvider], ...] = (AnthropicProvider, OpenAIProvider)
#: The name of the one document of each provider.
DOCUMENT = "nightdesk"


async def with_blocks(settings: Settings) -> Settings:
    """`settings`, each provider and site that has a block replaced by what the block says.

    Raises:
        ConfigError: if a document cannot be used; it is never read with defaults for what it lacks.
    """
    changed: dict[str, Any] = {"sites": dict(settings.sites)}
    for kind in PROVIDERS:
        for name, block in (await documents(kind)).items():
            if name == DOCUMENT:
                theirs = _settings(kind, name, block)
                ours = getattr(settings, kind.provider)
                changed[kind.provider] = (
                    theirs if theirs.api_key else theirs.model_copy(update={"api_key": ours.api_key})
                )
    for name, site in (await documents(StaticSite)).items():
        changed["sites"][name] = _settings(StaticSite, name, site)
    return settings.model_copy(update=changed)


def _settings(kind: type[Block], name: str, block: Any) -> Any:
    try:
        return block.settings()
    except ValidationError as error:
        raise unusable(kind, name, error) from None


async def documents(kind: type[BlockType]) -> dict[str, BlockType]:
    """All documents of a block type by name; none if the type is not registered.

    Raises:
        ConfigError: if one does not fit the type.
    """
    found: dict[str, BlockType] = {}
    async with get_client() as client:
        try:
            read = await client.read_block_documents_by_type(
                block_type_slug=kind.get_block_type_slug(), include_secrets=True
            )
        except PrefectHTTPStatusError as error:
            if error.response.status_code == 404:
                return found
            raise
        for document in read:
            name = document.name or ""
            try:
                found[name] = kind.model_validate(document.data)
            except ValidationError as error:
                raise unusable(kind, name, error) from None
    return found


def unusable(kind: type[Block], name: str, error: ValidationError) -> ConfigError:
    """A block document that cannot be used, named with what is wrong with it."""
    return ConfigError(
        f"the block {kind.get_block_type_slug()}/{name} cannot be used ({'; '.join(wrong_fields(error))}): "
        "save it again in the Prefect UI, or run `python -m deployments.apply`"
    )
