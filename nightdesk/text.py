"""Text that Postgres, JSON and HTML accept, whatever a model, a page or an exception produced."""

from __future__ import annotations

import math
from typing import Any

import regex

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Postgres refuses NUL, UTF-8 has no lone surrogates, and XML (feeds, sitemaps) has no other C0 controls.
_UNSTORABLE = regex.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def storable(text: str) -> str:
    """Drop NUL and other control characters and replace lone surrogates by U+FFFD."""
    return _UNSTORABLE.sub(lambda m: _REPLACEMENT if "\ud800" <= m[0] <= "\udfff" else "", text)


def storable_json(value: Any) -> Any:
    """`value` with every string storable and every NaN or infinity as null, ready for `jsonb`."""
    match value:
        case str():
            return storable(value)
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {storable(str(key)): storable_json(item) for key, item in value.items()}
        case list() | tuple():
            return [storable_json(item) for item in value]
        case None | bool() | int() | float():
            return value
        case _:
            return storable(str(value))


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, ending in an ellipsis if anything was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
