"""Whole articles from the sentence bank: no sentence twice, as many words as were asked for."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from nightdesk.sandbox.writer.bank import ROLES, Bank, Theme, fill
from nightdesk.sandbox.writer.commission import Commission
from nightdesk.sandbox.writer.words import word_count

Json = dict[str, Any]

_SPARE = 1.15  # a model that is asked for n words should not be held to n exactly
_SPARE_WORDS = 12
_WORDS_PER_SECTION = 90
_MIN_SECTIONS, _MAX_SECTIONS = 4, 8
_MIN_PARAGRAPHS, _MAX_PARAGRAPHS = 2, 4
_LIST_ITEMS = 3


def headings(commission: Commission, bank: Bank, chance: random.Random) -> list[str]:
    """Distinct headings for an article of the length asked for, in a sensible order."""
    wanted = math.ceil(commission.min_words / _WORDS_PER_SECTION)
    wanted = max(_MIN_SECTIONS, min(_MAX_SECTIONS, wanted))
    pools = {role: chance.sample(bank.headings[role], len(bank.headings[role])) for role in ROLES}
    per_role = [wanted // len(ROLES) + (index < wanted % len(ROLES)) for index in range(len(ROLES))]
    return [
        fill(text, commission)
        for role, count in zip(ROLES, per_role, strict=True)
        for text in pools[role][:count]
    ]


class ArticleWriter:
    """Writes the parts of one article and remembers what it has said."""

    def __init__(self, commission: Commission, bank: Bank, chance: random.Random, said: str = "") -> None:
        self._commission = commission
        self._bank = bank
        self._chance = chance
        self._theme = bank.theme_of(commission)
        self._said: set[str] = {
            text for text in _all_sentences(bank, self._theme, commission) if text in said
        }
        self._items = _shuffled(self._theme.items, chance)

    def draft(self) -> Json:
        """An article for the commission's title and headings, or for ones of its own."""
        commission = self._commission
        names = list(commission.headings) or headings(commission, self._bank, self._chance)
        title = commission.title or self._bank.one("titles", commission, self._chance)
        introduction = self.introduction()
        target = math.ceil(commission.min_words * _SPARE) + _SPARE_WORDS
        sections: list[Json] = []
        words = word_count(introduction)
        for index, name in enumerate(names):
            share = math.ceil((target - words) / (len(names) - index))
            body = self.section(name, index, share)
            sections.append({"heading": name, "body": body})
            words += word_count(body)
        return {"title": title, "introduction": introduction, "sections": sections}

    def introduction(self) -> str:
        """A paragraph whose first sentence has the keyword exactly as given."""
        first = self._bank.one("openings", self._commission, self._chance)
        more = _shuffled(self._bank.all("openings_more", self._commission), self._chance)
        self._said.update([first, *more[:2]])
        return " ".join([first, *more[:2]])

    def section(self, heading: str, index: int, words: int) -> str:
        """Two to four paragraphs of at least `words` words; every other section has a list."""
        pool = self._pool(self._bank.role_of(heading, index))
        sentences: list[str] = []
        listing = self._list() if index % 2 == 0 else ""
        have = word_count(listing)
        while have < words or len(sentences) < 2 * _MIN_PARAGRAPHS:
            sentences.append(next(pool))
            have += word_count(sentences[-1])
        paragraphs = _paragraphs(sentences)
        if listing:
            paragraphs.insert(1, listing)
        return "\n\n".join(paragraphs)

    def closing(self) -> str:
        """A sentence with the keyword that was not said yet."""
        texts = _shuffled(self._bank.all("closings", self._commission), self._chance)
        fresh = [text for text in texts if text not in self._said] or texts
        self._said.add(fresh[0])
        return fresh[0]

    def _list(self) -> str:
        items, self._items = self._items[:_LIST_ITEMS], self._items[_LIST_ITEMS:]
        if len(items) < _LIST_ITEMS:
            return ""
        lead = self._bank.texts["list_leads"][len(self._items) % len(self._bank.texts["list_leads"])]
        return lead + "\n\n" + "\n".join(f"- {item}" for item in items)

    def _pool(self, role: str) -> Iterator[str]:
        """Sentences not said yet: of the role, of none, of the other roles, then with a lead-in."""
        roles = self._theme.roles
        own = self._filled(roles[role])
        general = self._filled(self._bank.texts["general"])
        others = self._filled([text for other in ROLES if other != role for text in roles[other]])
        leads = self._bank.texts["lead_ins"]
        led = [f"{lead} {text}" for lead in leads for text in own + general + others]
        for text in self._forever([*own, *general, *others, *led]):
            self._said.add(text)
            yield text

    def _forever(self, texts: list[str]) -> Iterator[str]:
        yield from (text for text in texts if text not in self._said)
        while True:  # thousands of words on: nothing new is left to say
            yield from texts

    def _filled(self, templates: tuple[str, ...] | list[str]) -> list[str]:
        return _shuffled([fill(text, self._commission) for text in templates], self._chance)


def _paragraphs(sentences: list[str]) -> list[str]:
    count = max(_MIN_PARAGRAPHS, min(_MAX_PARAGRAPHS, len(sentences) // 3))
    size = math.ceil(len(sentences) / count)
    return [" ".join(sentences[start : start + size]) for start in range(0, len(sentences), size)]


def _all_sentences(bank: Bank, theme: Theme, commission: Commission) -> list[str]:
    lists = [
        *theme.roles.values(),
        bank.texts["general"],
        bank.texts["closings"],
        bank.texts["openings_more"],
    ]
    return [fill(text, commission) for texts in lists for text in texts]


def _shuffled(texts: list[str] | tuple[str, ...], chance: random.Random) -> list[str]:
    return chance.sample(texts, len(texts))
