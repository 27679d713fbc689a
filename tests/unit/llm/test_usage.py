"""Both providers' usage, read to one meaning: the whole prompt, its cached parts, the whole output."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.llm import anthropic, openai
from nightdesk.llm.sdk import count
from nightdesk.spend.usage import TokenUsage

# As the providers send them (Anthropic Messages of 2026-10-21, OpenAI Responses).
ANTHROPIC: dict[str, Any] = {
    "input_tokens": 1_000,
    "cache_creation_input_tokens": 5_000,
    "cache_read_input_tokens": 3_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 4_000, "ephemeral_1h_input_tokens": 1_000},
    "output_tokens": 700,
    "output_tokens_details": {"thinking_tokens": 200},
    "server_tool_use": None,
    "service_tier": "standard",
    "speed": "standard",
    "inference_geo": "us",
}
OPENAI: dict[str, Any] = {
    "input_tokens": 9_000,
    "input_tokens_details": {"cached_tokens": 3_000, "cache_write_tokens": 5_000},
    "output_tokens": 700,
    "output_tokens_details": {"reasoning_tokens": 200},
    "total_tokens": 9_700,
}


def without(usage: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in usage.items() if name not in names}


def test_anthropics_three_kinds_of_input_are_added_up() -> None:
    assert anthropic.read_usage(ANTHROPIC) == TokenUsage(
        input_tokens=9_000,
        cache_read_tokens=3_000,
        cache_write_tokens=5_000,
        cache_write_1h_tokens=1_000,
        output_tokens=700,
        reasoning_tokens=200,
        inference_geo="us",
    )


def test_openais_input_includes_what_came_from_the_cache() -> None:
    assert openai.read_usage(OPENAI, "default") == TokenUsage(
        input_tokens=9_000,
        cache_read_tokens=3_000,
        cache_write_tokens=5_000,
        output_tokens=700,
        reasoning_tokens=200,
    )


def test_details_that_a_compatible_server_leaves_out_are_zero() -> None:
    plain = {"input_tokens": 10, "output_tokens": 5}
    assert anthropic.read_usage(plain) == TokenUsage(input_tokens=10, output_tokens=5)
    assert openai.read_usage(plain, None) == TokenUsage(input_tokens=10, output_tokens=5)
    nulls = plain | dict.fromkeys(["input_tokens_details", "output_tokens_details", "cache_creation"])
    assert openai.read_usage(nulls, None) == TokenUsage(input_tokens=10, output_tokens=5)
    assert anthropic.read_usage(nulls) == TokenUsage(input_tokens=10, output_tokens=5)


def test_a_prompt_that_came_from_the_cache_alone_is_still_a_prompt() -> None:
    usage = anthropic.read_usage({"input_tokens": 0, "cache_read_input_tokens": 2_000, "output_tokens": 0})
    assert usage == TokenUsage(input_tokens=2_000, cache_read_tokens=2_000)


@pytest.mark.parametrize(
    "raw", [{}, {"input_tokens": 0, "output_tokens": 0}, {"output_tokens": 9}, {"input_tokens": True}]
)
def test_usage_without_a_prompt_is_no_usage(raw: dict[str, Any]) -> None:
    assert anthropic.read_usage(raw) is None
    assert openai.read_usage(raw, None) is None


def test_usage_whose_parts_are_larger_than_the_whole_is_no_usage() -> None:
    """Priced, it would be refused, and with it the answer that it belongs to."""
    assert openai.read_usage(OPENAI | {"input_tokens": 7_999}, None) is None
    assert openai.read_usage(OPENAI | {"input_tokens": 8_000}, None) is not None
    assert anthropic.read_usage(without(ANTHROPIC, "cache_creation_input_tokens")) is None


@pytest.mark.parametrize(
    ("said", "tier"), [("batch", "batch"), ("standard", None), ("priority", None), (None, None)]
)
def test_anthropics_batch_is_the_only_tier_with_prices_of_its_own(said: str | None, tier: str | None) -> None:
    usage = anthropic.read_usage(ANTHROPIC | {"service_tier": said})
    assert usage is not None
    assert usage.tier == tier


@pytest.mark.parametrize("tier", ["flex", "priority", "fast"])
def test_openais_tiers_with_prices_of_their_own_are_kept(tier: str) -> None:
    usage = openai.read_usage(OPENAI, tier)
    assert usage is not None
    assert usage.tier == tier


@pytest.mark.parametrize("tier", [None, "default", "auto", "scale", "a new one"])
def test_any_other_tier_is_the_standard_one(tier: str | None) -> None:
    usage = openai.read_usage(OPENAI, tier)
    assert usage is not None
    assert usage.tier is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*ANTHROPIC, *OPENAI]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*ANTHROPIC, *OPENAI]), JSON), st.none() | st.text())
def test_whatever_a_server_sends_is_read_to_something_that_can_be_priced_or_to_nothing(
    raw: dict[str, Any], tier: str | None
) -> None:
    for usage in (anthropic.read_usage(raw), openai.read_usage(raw, tier)):
        assert usage is None or usage.can_be_priced


@given(JSON.map(lambda value: {"a": value}), st.lists(st.sampled_from(["a", *OPENAI]), max_size=3))
def test_a_count_is_never_negative_and_never_a_surprise(raw: dict[str, Any], path: list[str]) -> None:
    found = count(raw, *path)
    assert type(found) is int
    assert found >= 0
