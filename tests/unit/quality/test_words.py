"""Words are counted as Unicode and a reader see them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.desk.quality import Requirements, check_html, count_words
from nightdesk.languages import LANGUAGES

EN, TE = LANGUAGES["en"], LANGUAGES["te"]
_ALPHABETS = ("abcčćžšđxyz", "абвгдђжзијклљмнњ", "కగచజటడతదనపబమ")


@pytest.mark.parametrize(
    ("tag", "text", "words"),
    [
        ("en", "Don't pay 3.14 for an e-mail 👨‍👩‍👧", 7),
        ("en", "", 0),
        ("en", " — … ! ", 0),
        ("sr-Latn", "Ђаци и đaci su isti", 5),
        ("te", "హైదరాబాద్‌లో మంచి భోజనం దొరుకుతుంది", 4),
        ("te", "ఇది ఒక చిన్న వాక్యం మాత్రమే కదా అండి", 7),
    ],
)
def test_words_are_counted_by_unicode_boundaries(tag: str, text: str, words: int) -> None:
    assert count_words(text, LANGUAGES[tag]) == words


def test_a_script_without_spaces_counts_about_one_word_per_two_characters() -> None:
    assert count_words("红楼梦是中国古典小说", EN) == 6


@settings(deadline=None)
@given(st.sampled_from(_ALPHABETS).flatmap(lambda a: st.lists(st.text(a, min_size=1), max_size=50)))
def test_joined_words_are_as_many_as_there_were(words: list[str]) -> None:
    assert count_words(" ".join(words), EN) == len(words)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["ప్రపంచం", "హైదరాబాద్‌లో", "నేను", "కి"]), max_size=30))
def test_joined_telugu_words_are_as_many_as_there_were(words: list[str]) -> None:
    assert count_words("\n".join(words), TE) == len(words)


def test_only_prose_is_counted() -> None:
    html = (
        "<h2>Two words</h2><p>One<b>word</b> <code>not this</code><!-- nor this --></p>"
        "<pre>nor that</pre><img alt='nor this'><script>nor()</script><nav>nor me</nav>"
    )
    assert check_html(html, Requirements(EN)).words == 3
