"""Instances of any JSON schema the providers accept (`nightdesk.sandbox.schemas`)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from nightdesk.sandbox.schemas import resolve

Json = dict[str, Any]

# Beyond this depth only the shortest way to a valid instance is taken.
_FREE_DEPTH = 4
_LIMIT_DEPTH = 40
_FORMATS = {
    "date-time": "2026-05-04T06:30:00Z",
    "date": "2026-05-04",
    "time": "06:30:00Z",
    "duration": "P1D",
    "email": "editor@example.com",
    "hostname": "example.com",
    "uri": "https://example.com/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "6f1c0f5e-3c0b-4b52-9a53-0d8c6f0a1b2c",
}


class Unsatisfiable(Exception):
    """A schema that contains itself with no way out has no finite instance."""


class SchemaWriter:
    """Writes one instance; sentences are used in order and then again."""

    def __init__(self, schema: Json, sentences: Sequence[str], chance: random.Random) -> None:
        self._root = schema
        self._sentences = sentences
        self._chance = chance
        self._written = 0

    def write(self) -> Any:
        """An instance of the schema.

        Raises:
            Unsatisfiable: if there is none.
        """
        return self._value(self._root, 0)

    def _value(self, schema: Json, depth: int) -> Any:
        if depth > _LIMIT_DEPTH:
            raise Unsatisfiable("the schema needs itself: it has no finite instance")
        if "$ref" in schema:
            return self._value(resolve(self._root, schema["$ref"]), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        if "allOf" in schema:
            return self._value(schema["allOf"][0], depth + 1)
        if "anyOf" in schema:
            return self._variant(schema["anyOf"], depth)
        kinds = schema.get("type", "object")
        if isinstance(kinds, list):
            return self._variant([schema | {"type": kind} for kind in kinds], depth)
        return self._of_type(kinds, schema, depth)

    def _variant(self, variants: list[Json], depth: int) -> Any:
        """Any variant near the root; deeper down the first one that comes to an end."""
        if depth < _FREE_DEPTH:
            variants = self._chance.sample(variants, len(variants))
        else:
            variants = sorted(variants, key=lambda variant: variant.get("type") != "null")
        for variant in variants[:-1]:
            try:
                return self._value(variant, depth + 1)
            except Unsatisfiable:
                continue
        return self._value(variants[-1], depth + 1)

    def _of_type(self, kind: str, schema: Json, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._string(schema)
            case "integer":
                return self._chance.randint(1, 9)
            case "number":
                return self._chance.randint(10, 95) / 10
            case "boolean":
                return self._chance.random() < 0.5
            case _:
                return None

    def _object(self, schema: Json, depth: int) -> Json:
        required = schema.get("required", [])
        return {
            name: self._value(part, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if name in required or depth < _FREE_DEPTH
        }

    def _array(self, schema: Json, depth: int) -> list[Any]:
        least = schema.get("minItems", 0)
        if depth < _FREE_DEPTH:
            try:
                return [
                    self._value(schema.get("items", {"type": "string"}), depth + 1)
                    for _ in range(self._chance.randint(2, 3))
                ]
            except Unsatisfiable:
                if least:
                    raise
        return [self._value(schema.get("items", {"type": "string"}), depth + 1) for _ in range(least)]

    def _string(self, schema: Json) -> str:
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        sentence = self._sentences[self._written % len(self._sentences)]
        self._written += 1
        return sentence
