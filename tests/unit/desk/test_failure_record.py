"""Recording a failure never fails."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.desk.failure_record import MAX_MESSAGE, MAX_STACK, record_failure
from nightdesk.errors import NeedsPerson, Reason
from nightdesk.text import storable, storable_json

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@given(ANY_TEXT)
def test_any_message_becomes_clean_text_of_bounded_size(message: str) -> None:
    record = record_failure(NeedsPerson(message * 100, reasons=(Reason("rule", message, message * 300),)))
    for text in (record.message, record.stack, *record.reasons[0].values()):
        text.encode("utf-8")
        assert "\x00" not in text
    assert len(record.message) <= MAX_MESSAGE
    assert len(record.stack) <= MAX_STACK


def test_an_exception_that_cannot_be_shown_is_still_recorded() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert record_failure(Unprintable()).error_class == "Unprintable"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | ANY_TEXT,
        lambda c: st.lists(c) | st.dictionaries(ANY_TEXT, c),
    )
)
def test_any_value_becomes_json_that_postgres_takes(value: object) -> None:
    shown = json.dumps(storable_json(value), allow_nan=False)
    assert "\\u0000" not in shown
    json.loads(shown)


@pytest.mark.parametrize(
    ("given_", "kept"),
    [("a\x00b", "ab"), ("\ud83d", "�"), ("тест\u200cఅ", "тест\u200cఅ"), ("a\tb\n", "a\tb\n")],
)
def test_what_is_dropped_replaced_and_kept(given_: str, kept: str) -> None:
    assert storable(given_) == kept
