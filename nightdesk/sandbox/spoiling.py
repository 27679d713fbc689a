"""Defects in an answer's text, as models really produce them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nightdesk.sandbox.faults import Leftover, Replace, Spoilt

_SURROGATE = "\ud83d"


def answer_text(value: Any) -> str:
    """A value as the JSON text of an answer: letters as they are, lone surrogates escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace(_SURROGATE, "\\ud83d")


def spoil(value: Any, action: Spoilt | Leftover | Replace) -> str:
    """The answer's text with the defect in it; `no_usage` leaves the text alone."""
    match action:
        case Leftover(text=leftover):
            return answer_text(_insert(value, f" {leftover}"))
        case Replace(find=find, replacement=replacement):
            return answer_text(_map(value, lambda text: text.replace(find, replacement)))
    match action.kind:
        case "fenced":
            return f"```json\n{answer_text(value)}\n```"
        case "bad_json":
            return answer_text(value).removesuffix("}") + ", "
        case "wrong_schema":
            return answer_text({"answer": value, "confidence": 0.9})
        case "empty_text":
            return ""
        case "nul":
            return answer_text(_insert(value, "\x00"))
        case "surrogate":
            return answer_text(_insert(value, _SURROGATE))
        case _:
            return answer_text(value)


def _insert(value: Any, inserted: str) -> Any:
    """`value` with `inserted` after the word in the middle of its longest string."""
    longest = max(_strings(value), key=len, default="")
    middle = longest.find(" ", len(longest) // 2)
    middle = len(longest) // 2 if middle < 0 else middle
    marked = longest[:middle] + inserted + longest[middle:]
    done = False

    def replace_once(text: str) -> str:
        nonlocal done
        if done or text != longest:
            return text
        done = True
        return marked

    return _map(value, replace_once)


def _strings(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for item in value.values() for text in _strings(item)]
        case list():
            return [text for item in value for text in _strings(item)]
        case _:
            return []


def _map(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _map(item, change) for key, item in value.items()}
        case list():
            return [_map(item, change) for item in value]
        case _:
            return value
