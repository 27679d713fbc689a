"""Any schema of the subset gets a valid instance."""

from __future__ import annotations

import random
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.sandbox.schemas import check_schema
from nightdesk.sandbox.writer import write_answer
from nightdesk.sandbox.writer.schema_values import SchemaWriter, Unsatisfiable

Json = dict[str, Any]

_SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"])
_LITERALS = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none())
_LEAVES: st.SearchStrategy[Json] = st.one_of(
    st.builds(lambda kind: {"type": kind}, _SCALARS),
    st.builds(lambda kind: {"type": [kind, "null"]}, st.sampled_from(["string", "integer"])),
    st.builds(lambda form: {"type": "string", "format": form},
              st.sampled_from(["date", "date-time", "uri", "email", "uuid", "ipv4", "ipv6"])),
    st.builds(lambda values: {"enum": values}, st.lists(_LITERALS, min_size=1, max_size=3)),
    st.builds(lambda value: {"const": value}, _LITERALS),
    st.just({"$ref": "#/$defs/Node"}),
)  # fmt: skip


def _object(properties: dict[str, Json]) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}  # fmt: skip


def _grow(parts: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.one_of(
        st.builds(_object, st.dictionaries(st.text(min_size=1, max_size=6), parts, max_size=4)),
        st.builds(lambda items: {"type": "array", "items": items}, parts),
        st.builds(lambda some: {"anyOf": some}, st.lists(parts, min_size=1, max_size=3)),
    )


_SCHEMAS = st.builds(
    lambda properties, title: (
        _object(properties)
        | {
            "title": title,
            # A recursive definition with a way out, as trees have.
            "$defs": {
                "Node": _object(
                    {
                        "name": {"type": "string"},
                        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                    }
                )
            },
        }
    ),
    st.dictionaries(st.text(max_size=6), st.recursive(_LEAVES, _grow, max_leaves=8), max_size=4),
    st.sampled_from(["Brief", "DraftText", "Other"]),
)


@given(schema=_SCHEMAS, number=st.integers(0, 2**64))
def test_every_schema_of_the_subset_gets_a_valid_instance(schema: Json, number: int) -> None:
    check_schema("openai", schema)
    value = write_answer("topic: bread\nlanguage: English (en)", schema, number)
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(value)
    assert value == write_answer("topic: bread\nlanguage: English (en)", schema, number)


def test_optional_properties_and_minimum_items_are_valid_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "some": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "one": {"allOf": [{"type": "string"}]},
        },
        "required": [],
        "additionalProperties": False,
    }
    check_schema("anthropic", schema)
    for number in range(20):
        value = SchemaWriter(schema, ["A sentence."], random.Random(number)).write()
        jsonschema.validate(value, schema)
        assert value["some"]


def test_a_schema_without_a_finite_instance_is_reported() -> None:
    schema = _object({"again": {"$ref": "#"}})
    with pytest.raises(Unsatisfiable):
        SchemaWriter(schema, ["A sentence."], random.Random(1)).write()
