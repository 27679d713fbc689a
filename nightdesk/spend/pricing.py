"""Prices from `genai-prices`, pinned and offline.

Rules that its users have paid for: the whole request is priced at the tier its total input reaches;
a model is priced only under its exact id (its matching is by prefix for some); a model without a
price is refused, never free; a wrong tier name would silently be priced as standard, so tiers are
mapped here. Data residency in the US costs 1.1 times (Anthropic; not in the package).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import regex

from nightdesk.errors import ConfigError
from nightdesk.money import to_scale
from nightdesk.spend.usage import TokenUsage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_DATED = regex.compile(r"(?:-\d{8}|-\d{4}-\d{2}-\d{2})$")
_US_SURCHARGE = Decimal("1.1")


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount with where its price came from."""

    amount_usd: Decimal
    provenance: dict[str, Any]  #: source, its version, the model's entry, unit prices, instant priced at


def require_price(provider: str, model: str) -> None:
    """Refuse a model that cannot be priced.

    Raises:
        ConfigError: before anything is spent on it.
    """
    try:
        _calculate(provider, model, TokenUsage(input_tokens=1, output_tokens=1), at=None)
    except LookupError:
        raise ConfigError(
            f"model '{model}' of {provider} has no price, so its spend could not be limited: "
            f"choose one that has, such as {_suggestion(provider)}"
        ) from None


def cost(provider: str, model: str, usage: TokenUsage, *, at: datetime) -> Cost:
    """What `usage` costs at the prices in force at `at`.

    Raises:
        ConfigError: if the model has no price.
        ValueError: if the usage is empty or contradicts itself (it would be priced at zero).
    """
    priced = _priced(provider, model, usage, at)
    return Cost(_total_usd(priced, provider, usage), _provenance(priced, usage, at))


def cost_usd(provider: str, model: str, usage: TokenUsage, *, at: datetime) -> Decimal:
    """`cost` without the provenance, for estimates.

    Raises:
        ConfigError, ValueError: as `cost` does.
    """
    return _total_usd(_priced(provider, model, usage, at), provider, usage)


def _priced(provider: str, model: str, usage: TokenUsage, at: datetime) -> PriceCalculation:
    if usage.total_tokens <= 0:
        raise ValueError(f"a call to {model} reports no tokens at all: it cannot be priced")
    try:
        return _calculate(provider, model, usage, at=at)
    except LookupError:
        raise ConfigError(f"model '{model}' of {provider} has no price") from None


def _total_usd(priced: PriceCalculation, provider: str, usage: TokenUsage) -> Decimal:
    surcharged = usage.inference_geo == "us" and provider == "anthropic"
    return to_scale(Decimal(priced.total_price) * (_US_SURCHARGE if surcharged else 1))


def _calculate(provider: str, model: str, usage: TokenUsage, *, at: datetime | None) -> PriceCalculation:
    from genai_prices import Usage, calc_price
    from genai_prices.types import PriceContext

    context: PriceContext | None = None
    if usage.tier == "batch":
        context = {"processing": "batch"}
    elif usage.tier is not None:
        context = {"service_tier": usage.tier}
    priced = calc_price(
        Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_write_1h_tokens=usage.cache_write_1h_tokens,
            output_tokens=usage.output_tokens,
        ),
        model,
        provider_id=provider,
        genai_request_timestamp=at,
        price_context=context,
    )
    if priced.model.id not in (model, _DATED.sub("", model)):
        raise LookupError(f"'{model}' is not '{priced.model.id}'")
    if priced.total_price <= 0:
        raise LookupError(f"'{model}' is priced at zero")
    return priced


def _provenance(priced: PriceCalculation, usage: TokenUsage, at: datetime) -> dict[str, Any]:
    return {
        "source": "genai-prices",
        "version": _package_version(),
        "model": priced.model.id,
        "units": str(priced.model_price),
        "tier": usage.tier or "standard",
        "at": at.isoformat(),
    }


@cache
def _package_version() -> str:
    return version("genai-prices")


def _suggestion(provider: str) -> str:
    return {
        "anthropic": "claude-sonnet-5-5 or claude-haiku-5-5",
        "openai": "gpt-6.1-sol or gpt-6-luna",
    }.get(provider, "one listed by genai-prices")
