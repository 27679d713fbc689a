"""How long a provider asks us to stay away."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.llm.failures import retry_after_s


@pytest.mark.parametrize(
    ("header", "header_ms", "wait_s"),
    [
        (None, None, None),
        ("0", None, 0),
        ("7", None, 7),
        (" 7 ", None, 7),
        ("1.5", None, 1.5),
        ("171", None, 171),
        ("86400", None, 86_400),
        ("4294967", None, 4_294_967),
        (None, "250", 0.25),
        ("3", "2500", 2.5),
        ("3", "soon", 3),
        ("3", "-1", 3),
        ("3", "", 3),
        ("", None, None),
        ("-1", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("soon", None, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None, None),
        ("1796083200", None, None),  # a moment in place of a duration: waiting 57 years is not meant
    ],
)
def test_seconds_come_from_milliseconds_first_and_nonsense_is_nothing(
    header: str | None, header_ms: str | None, wait_s: float | None
) -> None:
    assert retry_after_s(header, header_ms) == wait_s


@given(st.none() | st.text(), st.none() | st.text())
def test_no_header_makes_it_raise_or_answer_what_nobody_could_sleep(
    header: str | None, header_ms: str | None
) -> None:
    wait_s = retry_after_s(header, header_ms)
    assert wait_s is None or (math.isfinite(wait_s) and 0 <= wait_s < 10_000_000)


@given(st.floats(), st.floats())
def test_every_number_is_taken_as_it_is_or_not_at_all(header: float, header_ms: float) -> None:
    wait_s = retry_after_s(str(header), str(header_ms))
    usable = [value for value in (header_ms * 0.001, header) if 0 <= value < 10_000_000]
    assert wait_s == (usable[0] if usable else None)


@given(st.integers(0, 9_999_999))
def test_whole_seconds_are_exact(seconds: int) -> None:
    assert retry_after_s(str(seconds)) == seconds
