"""The tariff bills what the price pages say, computed by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from nightdesk.sandbox.tariff import TARIFFS, Tokens, bill_usd


@pytest.mark.parametrize(
    ("model", "tokens", "usd"),
    [
        # 1000 * 2 + 3000 * 0.10 + 5000 * 2.50 + 700 * 4 + 2500 * 10 = 42 600 per million
        ("claude-sonnet-5-5", Tokens(1000, 3000, 5000, 700, 2500), "0.0426"),
        # 3000 * 1 + 2500 * 5 = 15 500
        ("claude-haiku-4-5", Tokens(3000, output=2500), "0.0155"),
        # 1000 * 2 + 2048 * 0.10 + 512 * 2.50 + 100 * 10 = 4 484.8
        ("gpt-6.1-sol", Tokens(1000, 2048, 512, output=100), "0.0044848"),
        # 3000 * 0.10 + 2500 * 0.50 = 1 550
        ("gpt-6-luna", Tokens(3000, output=2500), "0.00155"),
    ],
)
def test_each_kind_of_token_is_billed_at_its_own_price(model: str, tokens: Tokens, usd: str) -> None:
    assert bill_usd(model, tokens) == Decimal(usd)


@pytest.mark.parametrize(
    ("model", "limit", "below", "above"),
    [
        # 100 000 * 0.10 + 1000 * 0.50 = 10 500; one more and all of it costs five times as much
        ("claude-haiku-5-5", 100_000, "0.0105", "0.0525005"),
        # 272 000 * 2 + 1000 * 10 = 554 000; then (272 001 * 2) * 2 + (1000 * 10) * 1.5 = 1 103 004
        ("gpt-6.1-sol", 272_000, "0.554", "1.103004"),
    ],
)
def test_a_prompt_past_the_cliff_makes_every_token_dearer(
    model: str, limit: int, below: str, above: str
) -> None:
    assert bill_usd(model, Tokens(limit, output=1000)) == Decimal(below)
    assert bill_usd(model, Tokens(limit + 1, output=1000)) == Decimal(above)


def test_the_cliff_counts_cached_tokens_too() -> None:
    # 90 000 * 0.10 + 10 001 * 0.01 = 9 100.01, times five
    assert bill_usd("claude-haiku-5-5", Tokens(90_000, 10_001)) == Decimal("0.04550005")


def test_a_model_without_a_tariff_has_no_price() -> None:
    with pytest.raises(KeyError):
        bill_usd("gpt-2", Tokens(1))
    assert all(tariff.output_usd > 0 for tariff in TARIFFS.values())
