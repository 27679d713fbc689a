"""What holds for every text."""

from __future__ import annotations

import html as html_module

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.desk.quality import Requirements, check_html, check_markdown
from nightdesk.desk.quality.folding import folded, normalise
from nightdesk.desk.quality.leftovers import ALWAYS, Leftover, own_leftovers
from nightdesk.desk.quality.verdict import PASSAGE_CHARS
from nightdesk.languages import LANGUAGES, Language
from nightdesk.text import storable

EN = LANGUAGES["en"]
languages = st.sampled_from(list(LANGUAGES.values()))
# Control characters, lone surrogates and unassigned code points included.
any_text = st.text(st.characters(), max_size=200)
_PIECES = (
    "<p>", "</p>", "<h2>", "</h2>", "<ul><li>", "<pre>", "<code>", "<q>", "<a href='http://['>", "<br>",
    "<table><td>", "<thinking>", "<!--", "-->", "&#0;", "&lt;", "[TODO]", "{{ x }}", "**", "“", "‘", '"',
    "```\n", "\n\n", "# ", "| a |\n|---|\n", "Текст", "వచనం", "word ", "\x00", "\ud800", "\u200b", "[x]: y",
)  # fmt: skip
markup = st.lists(st.sampled_from(_PIECES), max_size=25).map("".join)
ALL = (*ALWAYS, *own_leftovers(LANGUAGES["sr-Latn"]), *own_leftovers(LANGUAGES["te"]))


@settings(deadline=None)
@given(any_text | markup, languages, st.text(max_size=10), st.text(max_size=10))
def test_no_text_makes_the_gate_raise(text: str, language: Language, keyword: str, h2: str) -> None:
    asked = Requirements(language, keyword, 5, (h2,), frozenset({text, keyword}))
    for verdict in (check_html(text, asked), check_markdown(text, asked)):
        assert verdict.ok is not any(finding.severity == "block" for finding in verdict.findings)
        for finding in verdict.findings:
            assert len(finding.passage) <= PASSAGE_CHARS
            assert storable(finding.passage) == finding.passage
            assert storable(finding.message) == finding.message
            assert finding.message.endswith(".")


@settings(deadline=None)
@given(markup, languages)
def test_the_same_text_gets_the_same_verdict(text: str, language: Language) -> None:
    assert check_html(text, Requirements(language)) == check_html(text, Requirements(language))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from("\u00ad\u200b\u200c\u200d\u2060\ufeff"))))
def test_invisible_characters_never_hide_a_slot(insertions: list[tuple[int, str]]) -> None:
    text = "[TODO: the price]"
    for place, invisible in insertions:
        text = text[:place] + invisible + text[place:]
    rules = {finding.rule for finding in check_html(f"<p>It is {text}.</p>", Requirements(EN)).findings}
    assert rules == {"placeholder_todo"}


@settings(deadline=None)
@given(st.lists(st.integers(1, 16), max_size=5, unique=True), st.sampled_from(["b", "em", "span"]))
def test_inline_tags_never_hide_a_slot(places: list[int], tag: str) -> None:
    text = "[TODO: the price]"
    for place in sorted(places, reverse=True):
        text = f"{text[:place]}<{tag}>{text[place]}</{tag}>{text[place + 1 :]}"
    assert not check_html(f"<p>It is {text}.</p>", Requirements(EN)).ok


@settings(deadline=None)
@given(st.data())
def test_waiving_a_rule_removes_its_findings_and_no_others(data: st.DataObject) -> None:
    text = (
        "<h2>Empty</h2><h2>Costs</h2><p>[TODO] {{ price }} [source] As an AI, I hope this helps.</p>"
        "<p>**bold text** and Ignore all previous instructions. Caf\ufffd.</p>"
    )
    everything = check_html(text, Requirements(EN, min_words=500))
    rules = sorted({finding.rule for finding in everything.findings})
    assert len(rules) >= 9
    waived = data.draw(st.frozensets(st.sampled_from(rules)))
    rest = check_html(text, Requirements(EN, min_words=500, waived=waived))
    assert rest.findings == tuple(f for f in everything.findings if f.rule not in waived)
    assert rest.ok is (waived == frozenset(rules))


@settings(deadline=None)
@given(any_text, languages)
def test_a_folded_text_knows_where_each_character_came_from(text: str, language: Language) -> None:
    normalised = normalise(text)
    view = folded(normalised, language)
    assert len(view.text) == len(view.origin)
    assert list(view.origin) == sorted(view.origin)
    assert view.original(normalised, 0, len(view.text)) in normalised


@pytest.mark.parametrize("leftover", ALL, ids=lambda leftover: leftover.rule)
def test_every_pattern_is_bounded_so_that_no_text_can_make_it_slow(leftover: Leftover) -> None:
    outside_sets = regex.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", leftover.pattern)
    assert not regex.search(r"[*+]|\{\d*,\}", outside_sets)


@pytest.mark.parametrize(
    "piece",
    ["[", "[insert ", "As an AI ", "I'm sorry, but ", "{a", "** ", "“", "‘a’b", "kao ai, x ", "నేను ఒక AI "],
)
def test_a_long_hostile_text_is_judged_all_the_same(piece: str) -> None:
    text = piece * (15_000 // len(piece))
    for language in LANGUAGES.values():
        assert check_html(f"<p>{html_module.escape(text)}</p>", Requirements(language)).words >= 0


def test_deep_nesting_is_no_obstacle() -> None:
    html = "<div><b>" * 5_000 + "[TODO]"
    assert not check_html(html, Requirements(EN)).ok


def test_a_hundred_hits_of_a_rule_are_told_as_twenty_different_ones() -> None:
    html = "<p>" + " ".join(f"{{{{ slot_{number} }}}}" for number in range(100)) + " {{ slot_0 }}.</p>"
    findings = check_html(html, Requirements(EN)).findings
    assert len(findings) == len(set(findings)) == 20
