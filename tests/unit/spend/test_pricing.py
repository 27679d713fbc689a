"""Prices, worked out by hand from the providers' list prices of 2026-11-30 (USD per million tokens)."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.errors import ConfigError
from nightdesk.llm.providers import DEFAULT_MODELS
from nightdesk.spend.pricing import cost, cost_usd, require_price
from nightdesk.spend.usage import TokenUsage

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
MILLION = 1_000_000
# Columns: input, cache read, cache write, 1-hour cache write (Anthropic only), output.
PRICES = {
    "claude-sonnet-5-5": "2 0.10 2.50 4 10",
    "claude-sonnet-5": "2 0.20 2.50 4 10",
    "claude-haiku-5-5": "0.10 0.01 0.125 0.20 0.50",
    "claude-haiku-4-5": "1 0.10 1.25 2 5",
    "gpt-6.1-sol": "2 0.10 2.50 - 10",
    "gpt-6.1-terra": "1 0.05 1.25 - 5",
    "gpt-6-luna": "0.10 0.01 0.125 - 0.50",
}
ARTICLE = TokenUsage(input_tokens=3_000, output_tokens=2_500)


def provider_of(model: str) -> str:
    return "anthropic" if model.startswith("claude") else "openai"


def usd(model: str, **fields: Any) -> Decimal:
    return cost(provider_of(model), model, TokenUsage(**fields), at=AT).amount_usd


@pytest.mark.parametrize("model", PRICES)
def test_each_class_of_tokens_has_its_price(model: str) -> None:
    """50,000 tokens each: below every cliff, a twentieth of the price per million."""
    plain, read, write, write_1h, output = PRICES[model].split()
    n = 50_000
    assert usd(model, input_tokens=n) == Decimal(plain) / 20
    assert usd(model, input_tokens=n, cache_read_tokens=n) == Decimal(read) / 20
    assert usd(model, input_tokens=n, cache_write_tokens=n) == Decimal(write) / 20
    assert usd(model, input_tokens=1, output_tokens=n) == Decimal(output) / 20 + Decimal(plain) / MILLION
    if write_1h != "-":
        hour = usd(model, input_tokens=n, cache_write_tokens=n, cache_write_1h_tokens=n)
        assert hour == Decimal(write_1h) / 20


@pytest.mark.parametrize(
    ("model", "fields", "amount_usd"),
    [
        ("claude-sonnet-5-5", {"input_tokens": 3_000, "output_tokens": 2_500}, "0.031"),
        ("claude-haiku-5-5", {"input_tokens": 3_000, "output_tokens": 2_500}, "0.00155"),
        ("gpt-6.1-sol", {"input_tokens": 3_000, "output_tokens": 2_500}, "0.031"),
        ("gpt-6-luna", {"input_tokens": 3_000, "output_tokens": 2_500}, "0.00155"),
        # 1,000 at 2, 3,000 read at 0.10, 4,000 written at 2.50 and 1,000 for an hour at 4, 700 out at 10.
        ("claude-sonnet-5-5",
         {"input_tokens": 9_000, "cache_read_tokens": 3_000, "cache_write_tokens": 5_000,
          "cache_write_1h_tokens": 1_000, "output_tokens": 700}, "0.0233"),
        # 1,000 at 2, 3,000 read at 0.10, 5,000 written at 2.50, 700 out at 10.
        ("gpt-6.1-sol",
         {"input_tokens": 9_000, "cache_read_tokens": 3_000, "cache_write_tokens": 5_000,
          "output_tokens": 700}, "0.0218"),
    ],
)  # fmt: skip
def test_whole_calls_cost_what_a_pencil_says(model: str, fields: dict[str, int], amount_usd: str) -> None:
    assert usd(model, **fields) == Decimal(amount_usd)


def test_reasoning_is_inside_the_output_and_not_paid_twice() -> None:
    base = {"input_tokens": 1_000, "output_tokens": 1_000}
    assert usd("gpt-6.1-sol", **base, reasoning_tokens=900) == usd("gpt-6.1-sol", **base)


@pytest.mark.parametrize("cached", [{}, {"cache_read_tokens": 40_000}, {"cache_write_tokens": 40_000}])
def test_haiku_costs_five_times_as_much_from_100_001_tokens_of_prompt_cached_or_not(
    cached: dict[str, int],
) -> None:
    def at_most_a_hundred_thousand(tokens: int) -> Decimal:
        prices = {"cache_read_tokens": "0.01", "cache_write_tokens": "0.125"}
        dearer = sum((Decimal(prices[name]) * count for name, count in cached.items()), Decimal(0))
        plain = Decimal("0.10") * (tokens - sum(cached.values()))
        return (dearer + plain + Decimal("0.50") * 1_000) / MILLION

    below = usd("claude-haiku-5-5", input_tokens=100_000, output_tokens=1_000, **cached)
    above = usd("claude-haiku-5-5", input_tokens=100_001, output_tokens=1_000, **cached)
    assert below == at_most_a_hundred_thousand(100_000)
    assert above == 5 * at_most_a_hundred_thousand(100_001)


def test_haikus_cliff_to_the_cent() -> None:
    assert usd("claude-haiku-5-5", input_tokens=100_000, output_tokens=1_000) == Decimal("0.0105")
    assert usd("claude-haiku-5-5", input_tokens=100_001, output_tokens=1_000) == Decimal("0.0525005")


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"])
@pytest.mark.parametrize("cached", [0, 270_000])
def test_openais_long_context_costs_double_and_half_again_from_272_001_tokens(
    model: str, cached: int
) -> None:
    plain, read, _, _, output = (Decimal(price) for price in PRICES[model].replace("-", "0").split())

    def prompt(tokens: int) -> Decimal:
        return (plain * (tokens - cached) + read * cached) / MILLION

    answer = output * 1_000 / MILLION
    fields = {"cache_read_tokens": cached, "output_tokens": 1_000}
    assert usd(model, input_tokens=272_000, **fields) == prompt(272_000) + answer
    assert usd(model, input_tokens=272_001, **fields) == 2 * prompt(272_001) + Decimal("1.5") * answer


@pytest.mark.parametrize("model", PRICES)
def test_a_batch_costs_half(model: str) -> None:
    fields = {"input_tokens": 3_000, "output_tokens": 2_500}
    assert usd(model, **fields, tier="batch") * 2 == usd(model, **fields)


def test_openais_tiers_have_their_prices() -> None:
    fields = {"input_tokens": 1_000, "output_tokens": 1_000}
    standard = usd("gpt-6.1-sol", **fields)
    assert standard == Decimal("0.012")
    assert usd("gpt-6.1-sol", **fields, tier="flex") == standard / 2
    assert usd("gpt-6.1-sol", **fields, tier="priority") == standard * 2
    assert usd("gpt-6.1-sol", **fields, tier="fast") == standard * 2


def test_a_tier_that_nobody_knows_is_never_cheaper_than_the_standard_one() -> None:
    assert usd("gpt-6.1-sol", input_tokens=1_000, tier="a new one") == usd("gpt-6.1-sol", input_tokens=1_000)


def test_answers_from_the_us_cost_a_tenth_more_at_anthropic() -> None:
    fields = {"input_tokens": 3_000, "output_tokens": 2_500}
    assert usd("claude-sonnet-5-5", **fields, inference_geo="us") == Decimal("0.0341")
    assert usd("claude-sonnet-5-5", **fields, inference_geo="us", tier="batch") == Decimal("0.01705")
    assert usd("claude-sonnet-5-5", **fields, inference_geo="global") == Decimal("0.031")
    assert usd("gpt-6.1-sol", **fields, inference_geo="us") == Decimal("0.031")


UNPRICED = [
    ("openai", "gpt-6.2-sol"),
    ("openai", "gpt-5.1-mini"),  # by prefix it would be priced as gpt-5.1-codex-mini
    ("openai", "GPT-6.1-SOL"),
    ("openai", "gpt-6.1-sol-latest"),
    ("openai", "claude-sonnet-5-5"),
    ("openai", ""),
    ("anthropic", "claude-mythos-5"),
    ("anthropic", "claude-mythos-5-1"),
    ("anthropic", "claude-sonnet-5.5"),
    ("anthropic", "claude-sonnet-5-5@20261101"),
    ("anthropic", "gpt-6.1-sol"),
    ("nobody", "claude-sonnet-5-5"),
]


@pytest.mark.parametrize(("provider", "model"), UNPRICED)
def test_a_model_without_a_price_of_its_own_is_refused_never_free(provider: str, model: str) -> None:
    with pytest.raises(ConfigError, match=f"'{model}' of {provider} has no price, .* choose one"):
        require_price(provider, model)
    with pytest.raises(ConfigError, match="no price"):
        cost(provider, model, ARTICLE, at=AT)


@pytest.mark.parametrize("model", PRICES)
def test_a_dated_id_has_the_price_of_its_model(model: str) -> None:
    dated = model + ("-20261101" if model.startswith("claude") else "-2026-11-01")
    if model == "claude-haiku-4-5":
        dated = "claude-haiku-4-5-20251001"
    require_price(provider_of(model), dated)
    assert usd(dated, input_tokens=3_000, output_tokens=2_500) == usd(
        model, input_tokens=3_000, output_tokens=2_500
    )


def test_the_models_that_are_used_unless_told_otherwise_have_a_price() -> None:
    for provider, models in DEFAULT_MODELS.items():
        for model in models:
            require_price(provider, model)


@pytest.mark.parametrize("usage", [TokenUsage(), TokenUsage(tier="batch"), TokenUsage(cache_read_tokens=9)])
def test_empty_usage_is_refused_not_priced_at_nothing(usage: TokenUsage) -> None:
    with pytest.raises(ValueError, match="no tokens"):
        cost("anthropic", "claude-sonnet-5-5", usage, at=AT)


def test_usage_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="cache_read_tokens"):
        usd("claude-sonnet-5-5", input_tokens=10, cache_read_tokens=11)


def test_an_amount_comes_with_where_its_price_came_from() -> None:
    priced = cost("anthropic", "claude-haiku-5-5", ARTICLE, at=AT)
    assert priced.provenance["source"] == "genai-prices"
    assert priced.provenance["version"]
    assert priced.provenance["model"] == "claude-haiku-5-5"
    assert "$0.5/output MTok" in priced.provenance["units"]
    assert (priced.provenance["tier"], priced.provenance["at"]) == ("standard", "2026-11-30T12:00:00+00:00")


def test_pricing_opens_no_socket_and_takes_no_prices_from_the_net(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_more: object) -> NoReturn:
        raise AssertionError("a price was looked up on the net")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    from genai_prices import Usage, calc_price

    for model in PRICES:
        require_price(provider_of(model), model)
        usd(model, input_tokens=1_000, output_tokens=1_000)
        priced = calc_price(Usage(input_tokens=1), model, provider_id=provider_of(model))
        assert priced.auto_update_timestamp is None


COUNTS = st.integers(0, 400_000)


@settings(deadline=None)  # the first price of a process loads the table
@given(st.sampled_from(sorted(PRICES)), COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from([None, "batch"]))
def test_an_amount_is_a_decimal_of_the_ledgers_scale_and_more_than_nothing(
    model: str, plain: int, read: int, written: int, output: int, tier: str | None
) -> None:
    usage = TokenUsage(
        input_tokens=1 + plain + read + written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=output,
        tier=tier,
    )
    priced = cost(provider_of(model), model, usage, at=AT)
    assert type(priced.amount_usd) is Decimal
    assert priced.amount_usd > 0
    assert priced.amount_usd.as_tuple().exponent == -10
    assert cost_usd(provider_of(model), model, usage, at=AT) == priced.amount_usd
