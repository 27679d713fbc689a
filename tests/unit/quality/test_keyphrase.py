"""A keyword is found in every form it takes in a sentence, and in no other word."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.desk.quality import Requirements, check_html, keyword_in_first_words
from nightdesk.languages import LANGUAGES

FOUND = [
    ("en", "running shoes", "Each running shoe is light."),
    ("en", "Heat Pump", "How HEAT-PUMPS work."),
    ("en", "café", "The best cafes in town."),
    ("en", "driver's licence", "Get a driver’s licence."),
    ("en", "C++", "Learn C++ today."),
    ("sr-Latn", "veštačka inteligencija", "O veštačkoj inteligenciji se piše."),
    ("sr-Latn", "vestacka inteligencija", "О вештачкој интелигенцији се пише."),
    ("sr-Cyrl", "вештачка интелигенција", "Развој вештачке интелигенције траје."),
    ("sr-Cyrl", "veštačka inteligencija", "Развој вештачке интелигенције траје."),
    ("sr-Latn", "đački dom", "Djački domovi primaju učenike."),
    ("sr-Latn", "knjiga", "O toj knjizi se priča."),
    ("sr-Cyrl", "књига", "О тој књизи се прича."),
    ("sr-Latn", "pas", "Šetnja sa psima prija."),
    ("sr-Latn", "injekcija", "Примите ињекције на време."),
    ("te", "హైదరాబాద్", "హైదరాబాద్‌లో వర్షం."),
    ("te", "హైదరాబాదు", "హైదరాబాదులో వర్షం."),
    ("te", "కృత్రిమ మేధస్సు", "కృత్రిమ మేధస్సును వాడండి."),
    ("te", "కథ", "ఒక కథలో రాజు."),
]
NOT_FOUND = [
    ("en", "cat", "This category is wide."),
    ("en", "heat pump", "The heat of a pump."),
    ("sr-Latn", "grad", "Gradnja kuće traje."),
    ("sr-Latn", "nož", "Boli me noga."),
    ("te", "హైదరాబాద్", "విజయవాడలో వర్షం."),
    ("te", "కథ", "ఈ కథనం చదవండి."),
]


@pytest.mark.parametrize(("tag", "keyword", "text"), FOUND)
def test_an_inflected_keyword_is_found(tag: str, keyword: str, text: str) -> None:
    assert keyword_in_first_words(text, keyword, LANGUAGES[tag])


@pytest.mark.parametrize(("tag", "keyword", "text"), NOT_FOUND)
def test_another_word_is_not_taken_for_the_keyword(tag: str, keyword: str, text: str) -> None:
    assert not keyword_in_first_words(text, keyword, LANGUAGES[tag])


@settings(deadline=None)  # the first call loads stemmers and models
@given(st.integers(0, 130))
def test_the_keyword_counts_within_the_first_hundred_words_only(before: int) -> None:
    text = "word " * before + "heat pump"
    assert keyword_in_first_words(text, "heat pump", LANGUAGES["en"]) is (before <= 98)


@pytest.mark.parametrize("tag", LANGUAGES)
@settings(deadline=None)  # the first call loads stemmers and models
@given(keyword=st.text(max_size=30), text=st.text(max_size=60))
def test_any_keyword_is_found_in_itself_and_no_text_is_refused(tag: str, keyword: str, text: str) -> None:
    assert keyword_in_first_words(keyword, keyword, LANGUAGES[tag])
    keyword_in_first_words(text, keyword, LANGUAGES[tag])


def _rules(html: str, keyword: str | None) -> set[str]:
    verdict = check_html(html, Requirements(LANGUAGES["en"], keyword=keyword))
    return {finding.rule for finding in verdict.findings}


def test_the_first_words_start_at_the_first_body_paragraph() -> None:
    contents = "<h1>Title</h1><nav>heat pump</nav><ul><li>heat pump</li></ul>"
    filler = "<p>" + "word " * 101 + ".</p>"
    assert _rules(contents + filler, "heat pump") == {"keyword_first_100"}
    assert _rules(contents + "<p>Intro.</p><h2>Heat pumps</h2><p>Text.</p>", "heat pump") == set()


@pytest.mark.parametrize("keyword", [None, "", "  "])
def test_no_keyword_is_not_asked_for(keyword: str | None) -> None:
    assert _rules("<p>Text.</p>", keyword) == set()
