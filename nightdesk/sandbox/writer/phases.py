"""The answers of the four phases, by the title of their schema."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import regex
from slugify import slugify

from nightdesk.sandbox.writer.article import ArticleWriter, headings
from nightdesk.sandbox.writer.bank import Bank, fill
from nightdesk.sandbox.writer.commission import Commission
from nightdesk.sandbox.writer.scripts import to_latin
from nightdesk.sandbox.writer.words import cut_at_word, sentences, word_count

Json = dict[str, Any]

_QUOTE_WORDS = range(10, 26)
_FACTS_PER_SOURCE, _MAX_FACTS = 2, 6
_META_MIN, _META_MAX = 122, 154
_SLUG_LENGTH = 60
_EXCERPT_LIMIT = 200
# What an editor would notice and remove: bracketed notes to the writer, planted by the fault `leftover`.
_NOTE = regex.compile(r"\s*\[\s*(?:TODO|TBD|TK|INSERT|PLACEHOLDER)\b[^\]\n]*\]", regex.IGNORECASE)


def brief(commission: Commission, bank: Bank, chance: random.Random) -> Json:
    """Facts quote whole sentences of the sources; without sources there are none."""
    facts = _facts(commission)
    return {
        "angle": bank.one("angles", commission, chance),
        "audience": commission.audience or bank.texts["audiences"][0],
        "questions": bank.all("questions", commission),
        "facts": facts,
        "terms": [commission.keyword, *bank.theme_of(commission).terms],
        "notes": bank.texts["notes_with_sources" if facts else "notes_without_sources"][0],
    }


def outline(commission: Commission, bank: Bank, chance: random.Random) -> Json:
    """A title and the headings, each with the points it has to make."""
    theme = bank.theme_of(commission)
    names = list(commission.headings) or headings(commission, bank, chance)
    sections = [
        {
            "heading": name,
            "points": [
                fill(text, commission) for text in chance.sample(theme.roles[bank.role_of(name, index)], 3)
            ],
        }
        for index, name in enumerate(names)
    ]
    title = commission.title or bank.one("titles", commission, chance)
    return {"title": title, "sections": sections}


def draft(commission: Commission, bank: Bank, chance: random.Random) -> Json:
    """The whole article."""
    return ArticleWriter(commission, bank, chance).draft()


def revise(commission: Commission, bank: Bank, chance: random.Random) -> Json:
    """The current text with small repairs, and what a search result shows of it."""
    article, changes = _improve(commission, bank, chance)
    introduction = article["introduction"]
    slug = slugify(to_latin(article["title"]), max_length=_SLUG_LENGTH, word_boundary=True)
    return {
        "title": article["title"],
        "slug": slug or "article",
        "excerpt": _excerpt(introduction),
        "meta_description": _meta_description(commission, bank, chance),
        "introduction": introduction,
        "sections": article["sections"],
        "changes": [bank.texts["changes"][index] for index in changes],
    }


PHASES: dict[str, Callable[[Commission, Bank, random.Random], Json]] = {
    "Brief": brief,
    "Outline": outline,
    "DraftText": draft,
    "RevisedText": revise,
}


def _facts(commission: Commission) -> list[Json]:
    facts: list[Json] = []
    for source in commission.sources:
        quotable = [text for text in sentences(source.text) if word_count(text) in _QUOTE_WORDS]
        facts += [
            {"statement": text, "quote": text, "source_url": source.url}
            for text in quotable[:_FACTS_PER_SOURCE]
        ]
    return facts[:_MAX_FACTS]


def _improve(commission: Commission, bank: Bank, chance: random.Random) -> tuple[Json, list[int]]:
    """The article and which of the bank's `changes` were made, by index."""
    current = commission.current_sections
    if not current:
        return ArticleWriter(commission, bank, chance).draft(), [0]
    whole = "\n".join([commission.current_introduction, *(part.body for part in current)])
    writer = ArticleWriter(commission, bank, chance, said=whole)
    sections = [{"heading": part.heading, "body": _NOTE.sub("", part.body)} for part in current]
    introduction = _NOTE.sub("", commission.current_introduction)
    changes = [0]
    opening = (sentences(introduction) or [""])[0]
    if commission.keyword.casefold() not in opening.casefold():
        introduction = f"{writer.introduction()} {introduction}".strip()
        changes.append(1)
    if _NOTE.search(whole):
        changes.append(2)
    sections[-1]["body"] = _append(sections[-1]["body"], writer.closing())
    for index, name in enumerate(commission.headings):
        if name not in {section["heading"] for section in sections}:
            sections.append({"heading": name, "body": writer.section(name, index, 60)})
    _lengthen(commission, writer, introduction, sections)
    title = commission.current_title or commission.title
    title = title or bank.one("titles", commission, chance)
    return {"title": title, "introduction": introduction, "sections": sections}, changes


def _excerpt(introduction: str) -> str:
    """One or two sentences, under 200 characters."""
    said = sentences(introduction) or [introduction]
    both = " ".join(said[:2])
    return both if len(both) < _EXCERPT_LIMIT else cut_at_word(said[0], _EXCERPT_LIMIT - 1)


def _append(body: str, sentence: str) -> str:
    """The body with a sentence after its last one; a list at the end is left alone."""
    ends_with_list = body.rpartition("\n")[2].startswith(("-", "*"))
    gap = "\n\n" if ends_with_list else " "
    return f"{body}{gap}{sentence}".strip()


def _lengthen(commission: Commission, writer: ArticleWriter, introduction: str, sections: list[Json]) -> None:
    """Add paragraphs to the last section if the article is too short."""
    have = word_count(introduction) + sum(word_count(part["body"]) for part in sections)
    if have < commission.min_words:
        more = writer.section(sections[-1]["heading"], 1, commission.min_words - have)
        sections[-1]["body"] = f"{sections[-1]['body']}\n\n{more}"


def _meta_description(commission: Commission, bank: Bank, chance: random.Random) -> str:
    """122 to 154 characters: search results cut longer ones."""
    first = bank.one("metas", commission, chance)
    tails = chance.sample(bank.texts["meta_tails"], len(bank.texts["meta_tails"]))
    for tail in tails:
        if _META_MIN <= len(f"{first} {tail}") <= _META_MAX:
            return f"{first} {tail}"
    return cut_at_word(" ".join([first, *tails]), _META_MAX)
