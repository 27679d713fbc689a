"""The most that a request can cost: nothing within its bounds ever costs more."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nightdesk.spend.estimate import OVERHEAD_TOKENS, input_bound_tokens, worst_case_usd
from nightdesk.spend.pricing import cost_usd
from nightdesk.spend.usage import TokenUsage
from tests.unit.spend.test_pricing import PRICES, provider_of

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
#: On both sides of the cliffs at 100,000 and 272,000 tokens.
BOUNDS = st.integers(1, 400_000) | st.sampled_from([100_000, 100_001, 272_000, 272_001])


def worst(model: str, input_tokens: int, output_tokens: int) -> Decimal:
    return worst_case_usd(
        provider_of(model), model, input_tokens=input_tokens, output_tokens=output_tokens, at=AT
    )


@st.composite
def within_bounds(draw: st.DrawFn) -> tuple[str, int, int, TokenUsage]:
    """A model, the bounds of a request to it, and a usage that keeps to them."""
    model = draw(st.sampled_from(sorted(PRICES)))
    input_bound, output_bound = draw(BOUNDS), draw(st.integers(1, 64_000))
    prompt = draw(st.integers(1, input_bound))
    read = draw(st.integers(0, prompt))
    written = draw(st.integers(0, prompt - read))
    claude = provider_of(model) == "anthropic"
    usage = TokenUsage(
        input_tokens=prompt,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=draw(st.integers(0, written)) if claude else 0,
        output_tokens=draw(st.integers(0, output_bound)),
        tier=draw(st.sampled_from([None, "batch"] if claude else [None, "batch", "flex"])),
        inference_geo=draw(st.sampled_from([None, "global", "us"])),
    )
    return model, input_bound, output_bound, usage


HOUR = TokenUsage(
    input_tokens=100_001,
    cache_write_tokens=100_001,
    cache_write_1h_tokens=100_001,
    output_tokens=500,
    inference_geo="us",
)


@settings(deadline=None)  # the first price of a process loads the table
@example(("claude-haiku-5-5", 100_001, 500, HOUR))
@given(within_bounds())
def test_no_usage_within_its_bounds_costs_more(case: tuple[str, int, int, TokenUsage]) -> None:
    model, input_bound, output_bound, usage = case
    assert cost_usd(provider_of(model), model, usage, at=AT) <= worst(model, input_bound, output_bound)


@settings(deadline=None)
@given(st.sampled_from(sorted(PRICES)), BOUNDS, BOUNDS, st.integers(1, 64_000), st.integers(1, 64_000))
def test_more_room_never_costs_less(model: str, one: int, other: int, out: int, out_other: int) -> None:
    small = worst(model, min(one, other), min(out, out_other))
    assert small <= worst(model, max(one, other), max(out, out_other))


@pytest.mark.parametrize(
    ("model", "input_tokens", "output_tokens", "amount_usd"),
    [
        # All written to the cache for an hour at 4, 8,000 out at 10, answered from the US at 1.1.
        ("claude-sonnet-5-5", 3_000, 8_000, "0.1012"),
        # Above the cliff: an hour's write at 1.00, out at 2.50, times 1.1.
        ("claude-haiku-5-5", 100_001, 1_000, "0.1127511"),
        # All written to the cache at 2.50, 8,000 out at 10.
        ("gpt-6.1-sol", 3_000, 8_000, "0.0875"),
    ],
)
def test_it_is_the_dearest_case_worked_out_by_hand(
    model: str, input_tokens: int, output_tokens: int, amount_usd: str
) -> None:
    amount = worst(model, input_tokens, output_tokens)
    assert amount == Decimal(amount_usd)
    assert type(amount) is Decimal


@given(st.lists(st.text(st.characters(codec=None, categories=None)), max_size=4))
def test_a_prompt_has_at_most_a_token_per_byte_and_the_wrapping(texts: list[str]) -> None:
    bound = input_bound_tokens(*texts)
    assert bound >= OVERHEAD_TOKENS + sum(len(text) for text in texts)
    assert bound == input_bound_tokens("".join(texts))


@pytest.mark.parametrize("text", ["plain", "ћирилица", "తెలుగు", "\N{GRINNING FACE}", "\ud83d", "a\x00b"])
def test_no_text_is_estimated_below_its_bytes(text: str) -> None:
    assert input_bound_tokens(text) >= OVERHEAD_TOKENS + len(text.encode("utf-8", "replace"))
