"""Model providers as blocks: keys and limits that can be edited in the Prefect UI."""

from __future__ import annotations

from typing import ClassVar

from prefect.blocks.core import Block
from pydantic import ConfigDict, Field, SecretStr

from nightdesk.config import ProviderName, ProviderSettings


class ModelProvider(Block):
    """What the providers have in common; not a block of its own.

    A field that this version does not know is refused: a renamed one would be loaded with its default.
    """

    model_config = ConfigDict(extra="forbid")
    provider: ClassVar[ProviderName]

    api_key: SecretStr | None = Field(
        default=None, description="Empty: the worker's own environment has the key."
    )
    base_url: str | None = Field(default=None, description="Empty: the provider's own address.")
    max_in_flight: int = Field(default=8, ge=1, le=1000, description="Calls at a time, over all workers.")
    tokens_per_minute: int | None = Field(
        default=None, ge=1000, description="Empty: no limit of ours below the provider's."
    )

    def settings(self) -> ProviderSettings:
        """The same as settings.

        Raises:
            pydantic.ValidationError: if a value cannot be used.
        """
        return ProviderSettings(
            api_key=self.api_key,
            base_url=self.base_url or None,
            max_in_flight=self.max_in_flight,
            tokens_per_minute=self.tokens_per_minute,
        )


class AnthropicProvider(ModelProvider):
    """Anthropic's models: key, address and limits."""

    _block_type_name = "Anthropic Provider"
    _block_type_slug = "anthropic-provider"
    provider: ClassVar[ProviderName] = "anthropic"


class OpenAIProvider(ModelProvider):
    """OpenAI's models: key, address and limits."""

    _block_type_name = "OpenAI Provider"
    _block_type_slug = "openai-provider"
    provider: ClassVar[ProviderName] = "openai"
