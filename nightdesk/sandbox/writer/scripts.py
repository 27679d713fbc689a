"""Serbian is written once, in Latin script, and converted."""

from __future__ import annotations

import cyrtranslit
import regex

_SLOT = regex.compile(r"(\{\w+\})")


def to_cyrillic(text: str) -> str:
    """Serbian in Cyrillic; `{slots}` stay as they are.

    The text must not hold n+j, l+j or d+ž across a morpheme boundary (`injekcija`): those would
    become one letter.
    """
    parts = _SLOT.split(text)
    return "".join(
        part if index % 2 else str(cyrtranslit.to_cyrillic(part, "sr")) for index, part in enumerate(parts)
    )


def to_latin(text: str) -> str:
    """Serbian in Latin script; other text is unchanged unless it is Cyrillic."""
    return str(cyrtranslit.to_latin(text, "sr"))
