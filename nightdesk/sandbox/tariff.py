"""What the twin providers charge: list prices in USD per million tokens.

Source: the providers' public price pages as of 2026-11-30. Written down here apart from the prices
that the spend governor uses, so that the two can be held against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one request, each counted once."""

    uncached: int
    cache_read: int = 0
    cache_write: int = 0  #: 5 minutes (Anthropic) or 30 minutes (OpenAI)
    cache_write_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt, cached or not."""
        return self.uncached + self.cache_read + self.cache_write + self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Cliff:
    """A prompt of more than `above_tokens` makes every token of the request dearer."""

    above_tokens: int
    prompt_factor: Decimal
    output_factor: Decimal


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices of one model, in USD per million tokens."""

    provider: str
    context_tokens: int
    uncached_usd: Decimal
    cache_read_usd: Decimal
    cache_write_usd: Decimal
    cache_write_1h_usd: Decimal
    output_usd: Decimal
    cliff: Cliff | None = None


def _claude(context_tokens: int, prices: str, cliff: Cliff | None = None) -> Tariff:
    uncached, read, write, write_1h, output = map(Decimal, prices.split())
    return Tariff("anthropic", context_tokens, uncached, read, write, write_1h, output, cliff)


def _gpt(prices: str) -> Tariff:
    uncached, read, write, output = map(Decimal, prices.split())
    cliff = Cliff(272_000, Decimal(2), Decimal("1.5"))
    # OpenAI sells no 1-hour entries; the price is there to be complete.
    return Tariff("openai", 1_050_000, uncached, read, write, write, output, cliff)


_HAIKU_CLIFF = Cliff(100_000, Decimal(5), Decimal(5))

#: Model id → prices. Columns: uncached, cache read, cache write, (1-hour write,) output.
TARIFFS: dict[str, Tariff] = {
    "claude-sonnet-5-5": _claude(1_000_000, "2 0.10 2.50 4 10"),
    "claude-haiku-5-5": _claude(1_000_000, "0.10 0.01 0.125 0.20 0.50", _HAIKU_CLIFF),
    "claude-sonnet-5": _claude(1_000_000, "2 0.20 2.50 4 10"),
    "claude-haiku-4-5": _claude(200_000, "1 0.10 1.25 2 5"),
    "gpt-6.1-sol": _gpt("2 0.10 2.50 10"),
    "gpt-6.1-terra": _gpt("1 0.05 1.25 5"),
    "gpt-6-luna": _gpt("0.10 0.01 0.125 0.50"),
}


def bill_usd(model: str, tokens: Tokens) -> Decimal:
    """The exact price of one answered request. KeyError if the model is not in the table."""
    tariff = TARIFFS[model]
    prompt = (
        tokens.uncached * tariff.uncached_usd
        + tokens.cache_read * tariff.cache_read_usd
        + tokens.cache_write * tariff.cache_write_usd
        + tokens.cache_write_1h * tariff.cache_write_1h_usd
    )
    output = tokens.output * tariff.output_usd
    if tariff.cliff is not None and tokens.prompt > tariff.cliff.above_tokens:
        prompt *= tariff.cliff.prompt_factor
        output *= tariff.cliff.output_factor
    return (prompt + output) / _MILLION
