"""From settings to adapters: which provider, which models, and no key and no price unnoticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from nightdesk.config import ProviderName, Settings
from nightdesk.errors import ConfigError
from nightdesk.llm.port import ModelPort
from nightdesk.spend.pricing import require_price

DEFAULT_MODELS: dict[ProviderName, tuple[str, str]] = {
    "anthropic": ("claude-sonnet-5-5", "claude-haiku-5-5"),
    "openai": ("gpt-6.1-sol", "gpt-6-luna"),
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The provider in use with its two models; both have a price."""

    provider: ProviderName
    strong: str
    cheap: str


def choose_models(settings: Settings, *, override: str | None = None) -> ModelChoice:
    """The provider and models that the settings name; `override` is used for every phase.

    Raises:
        ConfigError: if no provider has a key, or a model has no price.
    """
    provider = settings.provider or _provider_with_key(settings)
    if settings.provider_settings(provider).api_key is None:
        raise ConfigError(
            f"there is no key for {provider}: set {provider.upper()}_API_KEY, or try `nightdesk demo`, "
            "which needs none"
        )
    strong, cheap = DEFAULT_MODELS[provider]
    choice = ModelChoice(
        provider,
        strong=override or settings.models.strong or strong,
        cheap=override or settings.models.cheap or cheap,
    )
    for model in {choice.strong, choice.cheap}:
        require_price(provider, model)
    return choice


def _provider_with_key(settings: Settings) -> ProviderName:
    for name in get_args(ProviderName):
        if settings.provider_settings(name).api_key is not None:
            return name  # type: ignore[no-any-return]
    raise ConfigError(
        "no model provider is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
        "or try `nightdesk demo`, which needs neither"
    )


def open_model(settings: Settings, provider: ProviderName) -> ModelPort:
    """The adapter of one provider (importing its SDK takes a second; only here)."""
    configured = settings.provider_settings(provider)
    key = configured.api_key.get_secret_value() if configured.api_key else ""
    if provider == "anthropic":
        from nightdesk.llm.anthropic import AnthropicModel

        return AnthropicModel(key, configured.base_url)
    from nightdesk.llm.openai import OpenAIModel

    return OpenAIModel(key, configured.base_url)
