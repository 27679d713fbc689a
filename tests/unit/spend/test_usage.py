"""Usage as it is stored with a call, and when it can be priced."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.spend.usage import TokenUsage

COUNTS = st.integers(0, 10**9)


@given(
    st.builds(
        TokenUsage,
        COUNTS,
        COUNTS,
        COUNTS,
        COUNTS,
        COUNTS,
        COUNTS,
        st.none() | st.text(),
        st.none() | st.text(),
    )
)
def test_what_is_stored_is_what_was_used(usage: TokenUsage) -> None:
    assert TokenUsage(**json.loads(json.dumps(usage.as_json()))) == usage


@pytest.mark.parametrize(
    ("usage", "priced"),
    [
        (TokenUsage(), False),
        (TokenUsage(output_tokens=5), False),
        (TokenUsage(input_tokens=1), True),
        (TokenUsage(input_tokens=10, cache_read_tokens=4, cache_write_tokens=6), True),
        (TokenUsage(input_tokens=10, cache_read_tokens=5, cache_write_tokens=6), False),
        (TokenUsage(input_tokens=10, cache_write_tokens=6, cache_write_1h_tokens=6), True),
        (TokenUsage(input_tokens=10, cache_write_tokens=6, cache_write_1h_tokens=7), False),
    ],
)
def test_usage_can_be_priced_if_its_parts_fit_into_a_prompt(usage: TokenUsage, priced: bool) -> None:
    assert usage.can_be_priced is priced
