"""Schemas are refused where the providers refuse them, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import transform_schema
from openai.lib._pydantic import to_strict_json_schema

from nightdesk.desk.outputs import Brief, DraftText, Outline, Output, RevisedText
from nightdesk.sandbox.schemas import SchemaRefused, check_schema

PHASES: list[type[Output]] = [Brief, Outline, DraftText, RevisedText]


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}  # fmt: skip


@pytest.mark.parametrize("model", PHASES)
def test_the_schemas_of_our_phases_are_accepted(model: type[Output]) -> None:
    check_schema("anthropic", dict(transform_schema(model)))
    check_schema("openai", to_strict_json_schema(model))


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize(
    "keyword",
    [{"default": 1}, {"examples": [1]}, {"minimum": 0}, {"maximum": 3}, {"multipleOf": 2},
     {"exclusiveMinimum": 1}],
)  # fmt: skip
def test_keywords_outside_the_subset_are_refused(provider: str, keyword: dict[str, Any]) -> None:
    with pytest.raises(SchemaRefused, match=next(iter(keyword))):
        check_schema(provider, obj(inner=obj(a={"type": "integer"} | keyword)))


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        obj() | {"additionalProperties": True},
        obj(a={"type": "object", "properties": {}}),
        obj(a={"type": "string", "maxLength": 3}),
        obj(a={"type": "string", "pattern": "a"}),
        obj(a={"type": "array", "items": {"type": "string"}, "minItems": 2}),
        obj(a={"$ref": "#/$defs/Nothing"}),
        obj(a={"description": "no type"}),
        obj(a={"type": "text"}),
        obj(a=3),
    ],
)
def test_schemas_outside_the_subset_are_refused(provider: str, schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaRefused):
        check_schema(provider, schema)


def test_a_property_may_be_called_like_a_keyword() -> None:
    for provider in ("anthropic", "openai"):
        check_schema(provider, obj(default={"type": "string"}, minimum={"type": "integer"}))


def test_only_openai_wants_every_property_required() -> None:
    schema = obj(a={"type": "string"}) | {"required": []}
    check_schema("anthropic", schema)
    with pytest.raises(SchemaRefused, match="required"):
        check_schema("openai", schema)


def test_only_openai_refuses_keywords_beside_a_reference() -> None:
    schema = obj(a={"$ref": "#/$defs/A", "description": "x"}) | {"$defs": {"A": {"type": "string"}}}
    check_schema("anthropic", schema)
    with pytest.raises(SchemaRefused, match="ref"):
        check_schema("openai", schema)
