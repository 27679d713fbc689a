"""Length, sections, links, end and language of an article."""

from __future__ import annotations

import pytest

from nightdesk.desk.quality import GATE_VERSION, Finding, Requirements, check_html, check_markdown
from nightdesk.languages import LANGUAGES

EN = LANGUAGES["en"]
SENTENCE = "A heat pump moves heat from the cold air outside into the warm house. "
LONG = SENTENCE * 5

SERBIAN = (
    "Toplotna pumpa prenosi toplotu iz spoljašnjeg vazduha u kuću i tako štedi struju. Pre kupovine "
    "proverite izolaciju zidova, snagu uređaja i cenu ugradnje. Dobar majstor će izmeriti svaku "
    "prostoriju i predložiti uređaj koji odgovara vašem domu. Mnogi vlasnici kažu da im se ulaganje "
    "vratilo za nekoliko godina."
)
CROATIAN = (
    "Dizalica topline prenosi toplinu iz vanjskoga zraka u kuću i tako štedi struju. Prije kupnje "
    "provjerite izolaciju zidova, snagu uređaja i cijenu ugradnje. Dobar će majstor izmjeriti svaku "
    "prostoriju i predložiti uređaj koji odgovara vašemu domu. Mnogi vlasnici tvrde da im se "
    "ulaganje vratilo."
)
SERBIAN_CYRILLIC = (
    "Топлотна пумпа преноси топлоту из спољашњег ваздуха у кућу и тако штеди струју. Пре куповине "
    "проверите изолацију зидова, снагу уређаја и цену уградње. Добар мајстор ће измерити сваку "
    "просторију и предложити уређај који одговара вашем дому. Многи власници кажу да им се улагање "
    "вратило."
)
RUSSIAN = (
    "Тепловой насос переносит тепло из наружного воздуха в дом и тем самым экономит электроэнергию. "
    "Перед покупкой проверьте изоляцию стен, мощность устройства и стоимость монтажа. Хороший мастер "
    "измерит каждую комнату и предложит устройство, которое подходит вашему дому. Многие владельцы "
    "говорят, что вложения окупились."
)
SPANISH = (
    "La bomba de calor transfiere el calor del aire exterior a la casa y así ahorra electricidad. Antes "
    "de comprar, compruebe el aislamiento de las paredes, la potencia del aparato y el precio de la "
    "instalación. Un buen técnico medirá cada habitación y propondrá el aparato que conviene a su hogar."
)
NAMES = (
    "Novak Đoković beat Carlos Alcaraz in Beograd, and Jelena Janković met Ana Ivanović in Novi Sad. "
    "Restaurants near Skadarlija and Kalemegdan serve ćevapi, kajmak, ajvar and pljeskavica, while "
    "Dorćol, Vračar and Zemun offer burek, rakija and kafana music by Bijelo Dugme."
)
TELUGU = "హీట్ పంప్ బయటి గాలి నుండి వేడిని ఇంట్లోకి తెస్తుంది మరియు విద్యుత్తును ఆదా చేస్తుంది. "


def _rules(html: str, requirements: Requirements | None = None) -> list[str]:
    return [finding.rule for finding in check_html(html, requirements or Requirements(EN)).findings]


def test_too_few_words_hold_an_article_and_enough_do_not() -> None:
    verdict = check_html("<p>One two three.</p>", Requirements(EN, min_words=4))
    assert (verdict.ok, verdict.words, verdict.gate_version) == (False, 3, GATE_VERSION)
    assert "at least 4 words: the text has 3" in verdict.findings[0].message
    assert check_html("<p>One two three.</p>", Requirements(EN, min_words=3)).ok


@pytest.mark.parametrize(
    ("tag", "wanted", "present"),
    [
        ("en", "What does it cost?", "  what DOES it <em>cost</em> "),
        ("sr-Latn", "Koliko košta?", "Колико кошта"),
        ("sr-Cyrl", "Ђачки дом", "Djački dom"),
        ("te", "ధర ఎంత?", "ధర ఎంత"),
    ],
)
def test_a_required_section_is_known_whatever_its_spelling(tag: str, wanted: str, present: str) -> None:
    asked = Requirements(LANGUAGES[tag], required_h2=(wanted,))
    assert _rules(f"<h2>{present}</h2><p>20.</p>", asked) == []
    assert _rules(f"<h3>{present}</h3><p>20.</p>", asked) == ["required_h2"]


def test_required_sections_may_come_in_any_order_and_each_missing_one_is_named() -> None:
    asked = Requirements(EN, required_h2=("Costs", "Savings", "Noise"))
    verdict = check_html("<h2>Savings</h2><p>Many.</p><h2>Costs</h2><p>Few.</p>", asked)
    assert [finding.passage for finding in verdict.findings] == ["Noise"]


def test_a_last_or_nested_section_without_text_is_empty() -> None:
    assert _rules("<h2>Costs</h2><p>Few.</p><h2>Noise</h2>") == ["empty_section"]
    assert _rules("<h2>Costs</h2><h3>Purchase</h3><h2>Noise</h2><p>None.</p>") == ["empty_section"] * 2


@pytest.mark.parametrize(
    "end",
    [
        "<p>It is cheap.</p>",
        "<p>Is it cheap?!”</p>",
        "<p>It is cheap.[12]</p>",
        "<p>It is cheap (mostly).</p>",
        "<p>It is cheap! 🎉</p>",
        "<p>Read <a href='/more'>more about it</a></p>",
        "<p>Then run <code>make</code></p>",
        "<p>— The editors</p>",
        "<ul><li>cheap</li><li>quiet</li></ul>",
        "<ul><li>only one</li></ul>",
        "<table><tr><td>cheap</td></tr></table>",
        "<p>यह सस्ता है।</p>",
        "<pre>make install,</pre>",
        "<img src='a.png'>",
    ],
)
def test_a_finished_article_is_not_called_truncated(end: str) -> None:
    assert _rules(f"<p>{LONG}</p>{end}") == []


@pytest.mark.parametrize(
    "end",
    [
        "<p>It is cheap and</p>",
        "<p>It is cheap,</p>",
        "<p>These are the reasons:</p>",
        "<ul><li>It is cheap.</li><li>It is quiet and</li></ul>",
        "<ul><li>cheap</li><li>quiet,</li></ul>",
        "<p>The price (</p>",
    ],
)
def test_an_article_that_stops_in_a_sentence_is_truncated_but_a_snippet_is_not(end: str) -> None:
    assert _rules(f"<p>{LONG}</p>{end}") == ["truncated_end"]
    assert _rules(end) == []


def test_links_are_checked_only_if_the_known_ones_are_given() -> None:
    html = '<p>See <a href="https://unknown.example/a">this</a>.</p>'
    assert _rules(html) == []
    assert _rules(html, Requirements(EN, known_links=frozenset())) == ["unknown_link"]


@pytest.mark.parametrize(
    "href",
    [
        "https://known.example/a",
        "HTTPS://KNOWN.example/a/#part",
        "//known.example/a",
        "/inside",
        "#part",
        "mailto:desk@known.example",
    ],
)
def test_a_known_or_internal_link_passes(href: str) -> None:
    asked = Requirements(EN, known_links=frozenset({"https://known.example/a"}))
    assert _rules(f'<p>See <a href="{href}">this</a>.</p>', asked) == []


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://known.example/b">this</a>',
        '<a href="https://known.example/a?x=1">this</a>',
        '<a href="//other.example/a">this</a>',
        '<a href="http://[">this</a>',
        '<code><a href="https://other.example/a">this</a></code>',
        "https://other.example/a",
    ],
)
def test_a_link_to_anywhere_else_is_held(html: str) -> None:
    asked = Requirements(EN, known_links=frozenset({"https://known.example/a"}))
    assert _rules(f"<p>See {html}.</p>", asked) == ["unknown_link"]


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("sr-Latn", SERBIAN),
        ("sr-Latn", CROATIAN),
        ("sr-Cyrl", SERBIAN_CYRILLIC),
        ("en", LONG),
        ("en", NAMES),
        ("te", TELUGU * 6),
        ("te", TELUGU + "Google Chrome, Microsoft Edge, Firefox."),
    ],
)
def test_a_text_in_its_language_passes(tag: str, text: str) -> None:
    assert _rules(f"<p>{text}</p>", Requirements(LANGUAGES[tag])) == []


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("en", SPANISH),
        ("en", SERBIAN),
        ("en", RUSSIAN),
        ("sr-Latn", LONG),
        ("sr-Latn", SPANISH),
        ("sr-Latn", SERBIAN_CYRILLIC),
        ("sr-Cyrl", SERBIAN),
        ("sr-Cyrl", RUSSIAN),
        ("te", LONG),
        ("sr-Latn", LONG * 20),
        ("en", SPANISH * 20),
    ],
)
def test_a_text_in_another_language_is_held(tag: str, text: str) -> None:
    assert _rules(f"<p>{text}</p>", Requirements(LANGUAGES[tag])) == ["language_mismatch"]


def test_one_foreign_paragraph_is_held_unless_it_is_a_quotation() -> None:
    asked = Requirements(LANGUAGES["te"])
    own = f"<p>{TELUGU * 10}</p>"
    assert _rules(f"{own}<p>{LONG}</p>{own}", asked) == ["language_mismatch"]
    assert _rules(f"{own}<blockquote>{LONG}</blockquote>{own}", asked) == []


def test_markdown_is_checked_as_its_readers_see_it() -> None:
    asked = Requirements(EN, min_words=8, required_h2=("Costs",), keyword="heat pump")
    text = "A *heat* pump.\n\n## Costs\n\n| What | USD |\n|---|---|\n| Unit | [price] |\n"
    verdict = check_markdown(text, asked)
    assert verdict.findings == (
        Finding("placeholder_slot", "Fill this slot.", "[price]", verdict.findings[0].severity),
    )


def test_a_warning_does_not_hold_an_article() -> None:
    verdict = check_html("<p>Let me know if you have any questions.</p>", Requirements(EN))
    assert verdict.ok
    assert [finding.rule for finding in verdict.findings] == ["chat_closing"]
