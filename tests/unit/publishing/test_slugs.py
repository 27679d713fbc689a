from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.languages import LANGUAGES
from nightdesk.publishing.slugs import RESERVED, make_slug, with_suffix

SLUG = regex.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SCRIPTS = "abz019- _./ABŽđчЉђకృత్రిమేఁంఃٲ人智🚆é&amp;\u200c\u0c4d"
texts = st.text() | st.text(alphabet=SCRIPTS) | st.sampled_from(sorted(RESERVED))
languages = st.sampled_from(sorted(LANGUAGES.values(), key=lambda language: language.tag))


@settings(deadline=None)
@given(text=texts, language=languages, max_length=st.integers(16, 80), fallback=texts)
def test_any_text_gives_a_slug_that_every_site_takes(
    text: str, language: object, max_length: int, fallback: str
) -> None:
    def slug(source: str) -> str:
        return make_slug(source, language, max_length=max_length, fallback=fallback)  # type: ignore[arg-type]

    result = slug(text)
    assert SLUG.fullmatch(result)
    assert len(result) <= max_length
    assert result not in RESERVED
    assert not result.replace("-", "").isdigit()
    assert slug(text) == result
    assert slug(result) == result


@settings(deadline=None)
@given(text=texts, number=st.integers(2, 10_000))
def test_a_suffix_keeps_a_slug_a_slug(text: str, number: int) -> None:
    slug = make_slug(text, LANGUAGES["en"], fallback="x")
    result = with_suffix(slug, f"-{number}")
    assert SLUG.fullmatch(result)
    assert len(result) <= 60
    assert result.endswith(f"-{number}")


@pytest.mark.parametrize(
    ("tag", "title", "slug"),
    [
        ("en", "Why Night Trains Return", "why-night-trains-return"),
        ("en", "Café & crème: 1,000 ways", "cafe-creme-1000-ways"),
        ("en", "人工智能是什么", "ren-gong-zhi-neng-shi-shi-yao"),
        ("sr-Cyrl", "Ђорђе и љубав: шта је џез?", "djordje-i-ljubav-sta-je-dzez"),
        ("sr-Latn", "Đorđe i ljubav: šta je džez?", "djordje-i-ljubav-sta-je-dzez"),
        ("te", "కృత్రిమ మేధస్సు అంటే ఏమిటి?", "krutrima-medhassu-ante-emiti"),
        ("te", "తెలుగు భాష చరిత్ర", "telugu-bhasha-charitra"),
        ("te", "హైదరాబాద్ బిర్యానీ", "haidarabad-biryani"),
        ("te", "సంపాదన", "sampadana"),
        ("te", "Python తో 2026 లో", "python-to-2026-lo"),
    ],
)
def test_titles_read_as_they_sound(tag: str, title: str, slug: str) -> None:
    assert make_slug(title, LANGUAGES[tag], fallback="none") == slug


@pytest.mark.parametrize("title", ["", "   ", "🚆🌙", "?!…", "్"])
def test_a_title_without_letters_takes_the_fallback(title: str) -> None:
    assert make_slug(title, LANGUAGES["te"], fallback="article-1a2b") == "article-1a2b"


def test_an_unusable_fallback_still_gives_a_slug() -> None:
    assert make_slug("", LANGUAGES["en"], fallback="🚆") == "article"


@pytest.mark.parametrize("title", ["feed", "Page", "2026", "2026-11-30", "wp-json", "WP Admin"])
def test_names_that_a_site_needs_itself_get_a_suffix(title: str) -> None:
    assert make_slug(title, LANGUAGES["en"], fallback="x").endswith("-article")


def test_a_long_title_is_cut_between_words() -> None:
    slug = make_slug("night trains " * 20, LANGUAGES["en"], fallback="x")
    assert slug == "night-trains-night-trains-night-trains-night-trains-night"


def test_one_endless_word_is_cut_anyway() -> None:
    assert make_slug("a" * 300, LANGUAGES["en"], fallback="x") == "a" * 60


def test_a_length_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        make_slug("x", LANGUAGES["en"], max_length=15, fallback="x")
