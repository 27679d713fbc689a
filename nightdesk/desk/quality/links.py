"""Links that lead out of the site: only to known sources, and never to a slot."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import regex

from nightdesk.desk.quality.article import Article
from nightdesk.desk.quality.verdict import Finding, finding

_HARMLESS_SCHEMES = frozenset({"mailto", "tel"})
# A bare address in the text counts as well: sites turn it into a link.
_BARE = regex.compile(r"https?://[^\s<>\"'“”«»)\]}|\\^`]{1,2000}", regex.IGNORECASE)
_SLOT = regex.compile(
    r"^(?:url|link|insert\b.{0,200}|your[-_ ].{0,200}|todo|tbd|placeholder|example|#?\[.{0,200}\])$"
    r"|\{\{.{0,200}\}\}|\$\{.{0,200}\}|\[(?:insert|todo|your)\b",
    regex.IGNORECASE | regex.DOTALL,
)
_CHAT_ORIGIN = regex.compile(r"(?i)[?&]utm_source=(?:chatgpt|openai|copilot|perplexity)")


def check_links(article: Article, known: frozenset[str] | None) -> Iterator[Finding]:
    """`placeholder_link` and `artefact` on the targets; `unknown_link` unless `known` is None."""
    for target in dict.fromkeys(article.links):
        if _SLOT.search(unquote(target)):
            yield finding("placeholder_link", "Put in the address of this link.", target)
        if _CHAT_ORIGIN.search(target):
            yield finding("artefact", "Remove the chat service's mark from this address.", target)
    if known is not None:
        yield from _unknown(article, known)


def _unknown(article: Article, known: frozenset[str]) -> Iterator[Finding]:
    wanted = {_key(url) for url in known}
    bare = (match[0].rstrip(".,;:!?…") for match in _BARE.finditer(article.prose))
    for target in dict.fromkeys((*article.links, *bare)):
        if _is_external(target) and _key(target) not in wanted:
            yield finding("unknown_link", "Link only to the article's sources, or remove this link.", target)


def _is_external(target: str) -> bool:
    try:
        parts = urlsplit(target)
    except ValueError:
        return True  # an address nobody can read is not known
    return bool(parts.netloc) or bool(parts.scheme and parts.scheme not in _HARMLESS_SCHEMES)


def _key(url: str) -> str:
    """What makes two addresses one page: not the fragment, a last slash, or the host's case."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    scheme = parts.scheme or "https"
    query = f"?{parts.query}" if parts.query else ""
    return f"{scheme}://{parts.netloc.lower()}{unquote(parts.path).rstrip('/')}{query}"
