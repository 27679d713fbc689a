"""The sentence banks: data files of templates with the slots `{topic}` and `{keyword}`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from nightdesk.sandbox.writer.commission import Commission
from nightdesk.sandbox.writer.scripts import to_cyrillic, to_latin

ROLES = ("start", "steps", "mistakes", "care")
#: Language tag → (data file, conversion of every text in it).
_BANKS: dict[str, tuple[str, Callable[[str], str]]] = {
    "en": ("en", str),
    "sr-Latn": ("sr", str),
    "sr-Cyrl": ("sr", to_cyrillic),
    "te": ("te", str),
}
# The closing mark of a Serbian quotation is the opening mark of an English one.
_OPENING_QUOTES = "„“\"'«"


@dataclass(frozen=True, slots=True)
class Theme:
    """What a field of work has to say, by the role of a section."""

    stems: tuple[str, ...]  #: beginnings of words that tell the theme, in Latin script for Serbian
    terms: tuple[str, ...]
    items: tuple[str, ...]
    roles: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Bank:
    """Everything that can be said in one language."""

    themes: tuple[Theme, ...]
    texts: dict[str, tuple[str, ...]]  #: named lists of templates
    headings: dict[str, tuple[str, ...]]  #: role → headings

    def theme_of(self, commission: Commission) -> Theme:
        """The theme that most words of topic and keyword speak of; the first one in doubt."""
        spoken = to_latin(f" {commission.topic} {commission.keyword}".casefold())
        return max(self.themes, key=lambda theme: sum(f" {stem}" in spoken for stem in theme.stems))

    def one(self, name: str, commission: Commission, chance: random.Random) -> str:
        """One text of a list, with its slots filled."""
        return fill(chance.choice(self.texts[name]), commission)

    def all(self, name: str, commission: Commission) -> list[str]:
        """All texts of a list, with their slots filled."""
        return [fill(text, commission) for text in self.texts[name]]

    def sentences(self, commission: Commission, chance: random.Random) -> list[str]:
        """All sentences of the commission's theme and of none, shuffled."""
        theme = self.theme_of(commission)
        found = [text for role in ROLES for text in theme.roles[role]] + [*self.texts["general"]]
        chance.shuffle(found)
        return [fill(text, commission) for text in found]

    def role_of(self, heading: str, index: int) -> str:
        """The role of a heading of ours, or any role in turn for a foreign one."""
        for role, headings in self.headings.items():
            if heading in headings:
                return role
        return ROLES[index % len(ROLES)]


def fill(template: str, commission: Commission) -> str:
    """The template with topic and keyword exactly as given; upper case if it begins with one."""
    text = template.replace("{topic}", commission.topic).replace("{keyword}", commission.keyword)
    return capitalised(text)


def capitalised(text: str) -> str:
    """The text with its first letter in upper case, unless it opens with a quotation mark."""
    return text if text[:1] in _OPENING_QUOTES else text[:1].upper() + text[1:]


@cache
def load_bank(language: str) -> Bank:
    """The bank of a supported language. KeyError for any other tag."""
    name, convert = _BANKS[language]
    content = (files("nightdesk.sandbox.writer") / "banks" / f"{name}.yaml").read_text("utf-8")
    raw: dict[str, Any] = yaml.safe_load(content)

    def texts(values: list[str]) -> tuple[str, ...]:
        return tuple(convert(value) for value in values)

    themes = tuple(
        Theme(
            stems=tuple(theme["stems"]),
            terms=texts(theme["terms"]),
            items=texts(theme["items"]),
            roles={role: texts(theme[role]) for role in ROLES},
        )
        for theme in raw.pop("themes").values()
    )
    headings = {role: texts(values) for role, values in raw.pop("headings").items()}
    return Bank(themes, {key: texts(values) for key, values in raw.items()}, headings)
