"""What counts as a quote, and what a text may do to a prompt."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.research import as_data, quote_is_in

TEXT = "Moths — said “the keeper” — don’t sleep. In 2024, 95 percent agree with co\u00adoperation.\n\nThe end is near."


@pytest.mark.parametrize(
    "quote",
    [
        'said "the keeper" - don\'t sleep', "Moths – said „the keeper” ", "95 percent  agree\nwith cooperation",
        "The end is", "cooperation. The end", "Mo\u200bths — said", "９５ percent agree",
    ],
)  # fmt: skip
def test_typography_and_invisible_characters_do_not_matter(quote: str) -> None:
    assert quote_is_in(quote, TEXT)


@pytest.mark.parametrize(
    "quote",
    [
        "", "   ", "The end", "Moths", "5 percent agree with", "Moths said the keeper", "moths — said “the",
        "the keeper don't sleep", "The end is ne", "Moths sleep in the garden", "\u200b" * 20, "- - -", "...",
    ],
)  # fmt: skip
def test_what_is_short_cut_or_changed_is_no_quote(quote: str) -> None:
    assert not quote_is_in(quote, TEXT)


def test_words_of_other_scripts_count() -> None:
    assert quote_is_in("лептири виде светло", "Ноћни лептири виде светло.")
    assert quote_is_in("చిమ్మటలు కాంతిని చూస్తాయి", "రాత్రి చిమ్మటలు కాంతిని చూస్తాయి.")
    assert not quote_is_in("కాంతిని", "రాత్రి చిమ్మటలు కాంతిని చూస్తాయి.")


@given(st.lists(st.text("abcčćжђత", min_size=1, max_size=8), min_size=3, max_size=30), st.data())
def test_every_run_of_three_words_is_in_its_text(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 3))
    end = data.draw(st.integers(start + 3, len(words)))
    assert quote_is_in("\u00a0".join(words[start:end]), " ".join(words))


@given(st.text(), st.text())
def test_any_two_texts_are_compared_without_an_error(quote: str, text: str) -> None:
    if quote_is_in(quote, text):
        assert len(unicodedata.normalize("NFKC", quote)) >= 5
        assert quote_is_in(quote, f"before {text} after")


NONCES = st.text("abcdefghijklmnopqrstuvwxyzABCDEF0123456789_-", min_size=8, max_size=32)


@given(NONCES, st.data())
def test_no_text_can_forge_the_delimiter(nonce: str, data: st.DataObject) -> None:
    pieces = [
        nonce, nonce[:4], nonce[4:], nonce.upper(), nonce.swapcase(), "</source ", "<source nonce=", '"', ">", "\n",
        "\u200b", "\U000e0041", "＜/ SOURCE ", "<\u200b/source", "< / source>", "\ufffd", "‹", "\0", "so", "urce",
    ]  # fmt: skip
    text = "".join(data.draw(st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=20)))
    shown = as_data(text, nonce)
    assert nonce.casefold() not in shown.casefold()
    assert not regex.search(r"[<＜﹤]\s*[/／]?\s*source(?![\p{L}\p{N}_-])", shown, regex.IGNORECASE)
    assert not regex.search(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\0]", shown)
    assert as_data(shown, nonce) == shown


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]).filter(lambda letter: letter != "<")))
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert as_data(text, "no-such-nonce-0123456789-abcdef") == text


def test_markup_of_other_kinds_is_left_as_it_is() -> None:
    text = "if a < b: <sources>, <source-map> and </div> stay"
    assert as_data(text, "0123456789abcdef") == text


@pytest.mark.parametrize("nonce", ["", "short", "has space 123", "нонсе1234", "a\nb345678"])
def test_a_nonce_that_could_be_guessed_or_break_out_is_refused(nonce: str) -> None:
    with pytest.raises(ValueError, match="nonce"):
        as_data("text", nonce)
