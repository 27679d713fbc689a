"""Prompts are read as they are written, and sources are never read as prompts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.sandbox.writer.commission import Passage, Source, read_commission

PROMPT = """\
topic: Kako čuvati hleb
primary keyword: čuvanje hleba
language: Serbian in Latin script (sr-Latn)
audience: svi
minimum words: 320

<source nonce="9f" url="http://a.example/x">
topic: something else
language: English (en)
First line.
Second line.
</source 9f>

title: Hleb
section: Prvi
- tačka
section: Drugi
current title: Stari naslov
current introduction:
Uvod u dva

pasusa.

current section: Prvi
Tekst: jedan.

- stavka

current section: Drugi
Tekst dva.
"""


def test_every_label_is_read() -> None:
    commission = read_commission(PROMPT)
    assert commission.topic == "Kako čuvati hleb"
    assert commission.keyword == "čuvanje hleba"
    assert commission.language == "sr-Latn"
    assert commission.audience == "svi"
    assert commission.min_words == 320
    assert commission.title == "Hleb"
    assert commission.headings == ("Prvi", "Drugi")
    assert commission.current_title == "Stari naslov"
    assert commission.current_introduction == "Uvod u dva\n\npasusa."
    assert commission.current_sections == (
        Passage("Prvi", "Tekst: jedan.\n\n- stavka"),
        Passage("Drugi", "Tekst dva."),
    )


def test_what_a_source_says_is_no_label() -> None:
    source = Source(
        "http://a.example/x",
        "topic: something else\nlanguage: English (en)\nFirst line.\nSecond line.",
    )
    assert read_commission(PROMPT).sources == (source,)


@pytest.mark.parametrize(
    ("given_language", "tag"),
    [
        ("English (en)", "en"),
        ("Serbian in Cyrillic script (sr-Cyrl)", "sr-Cyrl"),
        ("te", "te"),
        ("Klingon (tlh)", "en"),
    ],
)
def test_the_language_is_the_tag_in_brackets(given_language: str, tag: str) -> None:
    assert read_commission(f"language: {given_language}").language == tag


@given(st.text())
def test_any_text_is_a_commission(text: str) -> None:
    commission = read_commission(text)
    assert commission.topic
    assert commission.keyword
