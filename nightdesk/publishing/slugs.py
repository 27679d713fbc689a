"""Slugs: ASCII names in a URL.

Other scripts are transliterated: WordPress cuts percent-encoded slugs at 200 bytes.
"""

from __future__ import annotations

import cyrtranslit
import slugify

from nightdesk.languages import Language
from nightdesk.publishing.telugu import romanise
from nightdesk.text import storable

#: Words that a site needs for itself: a page with such a slug is refused, renamed or shadowed by
#: WordPress (feeds, rewrite bases, files), or clashes with what every site has.
RESERVED = frozenset(
    {
        *("atom", "embed", "feed", "feeds", "rdf", "rss", "rss2", "trackback"),
        *("archive", "archives", "attachment", "author", "blog", "category", "comments", "page"),
        *("pages", "post", "posts", "search", "tag", "tags"),
        *("wp-admin", "wp-content", "wp-cron", "wp-includes", "wp-json", "wp-login", "xmlrpc"),
        *("about", "admin", "api", "dashboard", "health", "home", "login", "logout"),
        *("assets", "cron", "favicon", "files", "images", "index", "media", "robots", "sitemap"),
        *("static", "style"),
    }
)
_SUFFIX = "-article"
_LAST_RESORT = "article"
_MIN_LENGTH = 16


def make_slug(title_or_slug: str, language: Language, *, max_length: int = 60, fallback: str) -> str:
    """A slug that matches `[a-z0-9]+(-[a-z0-9]+)*`, at most `max_length` characters long.

    The result depends on the arguments alone, and a slug made here is returned unchanged.
    `fallback` is used for a title without a letter or digit (emoji only, say). Reserved and purely
    numeric slugs get the suffix `-article`: WordPress takes numbers for page numbers or dates.

    Raises:
        ValueError: if `max_length` is below 16.
    """
    if max_length < _MIN_LENGTH:
        raise ValueError(f"max_length is {max_length}: give at least {_MIN_LENGTH}")
    slug = _ascii(title_or_slug, language, max_length) or _ascii(fallback, language, max_length)
    slug = slug or _LAST_RESORT
    if slug in RESERVED or slug.replace("-", "").isdecimal():
        return with_suffix(slug, _SUFFIX, max_length)
    return slug


def with_suffix(slug: str, suffix: str, max_length: int = 60) -> str:
    """`slug` + `suffix`, with `slug` cut so that both fit into `max_length` characters."""
    return slug[: max_length - len(suffix)].rstrip("-") + suffix


def _ascii(text: str, language: Language, max_length: int) -> str:
    latin = romanise(storable(text))
    if language.base == "sr":
        # Serbian spells đ as dj where there is no đ; the general tables make it a plain d.
        latin = cyrtranslit.to_latin(latin, "sr").replace("đ", "dj").replace("Đ", "Dj")
    return slugify.slugify(latin, max_length=max_length, word_boundary=True, save_order=True)
