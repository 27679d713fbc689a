"""Words and sentences of natural-language text."""

from __future__ import annotations

import regex

# Counts `e-mail` and `don't` once, so that no other way of counting words finds fewer.
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}\u200c\u200d]*(?:['’\-][\p{L}\p{M}\p{N}]+)*")
_SENTENCE = regex.compile(r"\S.*?[.!?…]+[”“»\")]*(?=\s|$)")


def word_count(text: str) -> int:
    """How many words a text has, in any script that puts spaces between words."""
    return len(_WORD.findall(text))


def sentences(text: str) -> list[str]:
    """The whole sentences of a text, each within one line and unchanged."""
    return [found for line in text.splitlines() for found in _SENTENCE.findall(line)]


def cut_at_word(text: str, limit: int) -> str:
    """At most `limit` characters ending in a whole word and a full stop."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    if not text[limit - 1].isspace() and " " in head:
        head = head[: head.rindex(" ")]
    return head.rstrip(" ,;:–-.!?") + "."
