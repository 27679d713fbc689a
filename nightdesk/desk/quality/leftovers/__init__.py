"""Phrases that a model, a prompt or a tool leaves behind, as data: one module per language.

A further language is a module with a tuple `LEFTOVERS` and a line in `_BY_BASE`.
"""

from __future__ import annotations

from nightdesk.desk.quality.leftovers import en, every, sr, te
from nightdesk.desk.quality.leftovers.leftover import Leftover
from nightdesk.languages import Language

__all__ = ["ALWAYS", "EVERY_LANGUAGE", "Leftover", "own_leftovers"]

#: Looked for in every language: a model that slips, slips into English.
ALWAYS: tuple[Leftover, ...] = every.LEFTOVERS + en.LEFTOVERS

_BY_BASE: dict[str, tuple[Leftover, ...]] = {"sr": sr.LEFTOVERS, "te": te.LEFTOVERS}

#: All there are.
EVERY_LANGUAGE: tuple[Leftover, ...] = ALWAYS + tuple(one for own in _BY_BASE.values() for one in own)


def own_leftovers(language: Language) -> tuple[Leftover, ...]:
    """What is looked for in this language only, in text folded for it; empty for a new language."""
    return _BY_BASE.get(language.base, ())
