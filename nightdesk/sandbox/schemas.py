"""Which JSON schemas the providers take for structured output.

Both take a small subset and answer 400 to the rest; see the providers' pages on structured outputs.
A keyword that is not listed here is refused, whatever its value.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_STRUCTURE = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
    "format",
}
_KEYWORDS = {
    "anthropic": _STRUCTURE | {"allOf", "minItems"},
    "openai": _STRUCTURE,
}
_TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}


class SchemaRefused(Exception):
    """A schema the provider would answer with 400; says where and why."""

    def __init__(self, where: tuple[str, ...], why: str) -> None:
        self.where = where
        self.why = why
        super().__init__(f"{'.'.join(where) or '(root)'}: {why}")


def check_schema(provider: str, schema: Json) -> None:
    """Refuse what the provider refuses.

    Raises:
        SchemaRefused: at the first thing that is not in the provider's subset.
    """
    if schema.get("type") != "object" and "$ref" not in schema:
        raise SchemaRefused((), "the schema of an answer must have 'type': 'object'")
    _check(provider, schema, schema, ())


def _check(provider: str, root: Json, schema: Any, where: tuple[str, ...]) -> None:
    if not isinstance(schema, dict):
        raise SchemaRefused(where, "a schema must be an object")
    _check_keywords(provider, root, schema, where)
    if schema.get("type") == "object" or "properties" in schema:
        _check_object(provider, schema, where)
    for keyword in ("properties", "$defs", "definitions"):
        for name, part in schema.get(keyword, {}).items():
            _check(provider, root, part, (*where, keyword, name))
    for keyword in ("anyOf", "allOf"):
        for index, part in enumerate(schema.get(keyword, [])):
            _check(provider, root, part, (*where, keyword, str(index)))
    if "items" in schema:
        _check(provider, root, schema["items"], (*where, "items"))


def _check_keywords(provider: str, root: Json, schema: Json, where: tuple[str, ...]) -> None:
    if unknown := sorted(schema.keys() - _KEYWORDS[provider]):
        raise SchemaRefused(where, f"'{unknown[0]}' is not permitted")
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise SchemaRefused(where, f"'{kind}' is not a type")
    if schema.get("minItems", 0) not in (0, 1):
        raise SchemaRefused(where, "'minItems' is permitted with 0 or 1 only")
    if len(schema.get("allOf", [])) > 1:
        raise SchemaRefused(where, "'allOf' with several schemas is not permitted")
    if "$ref" not in schema:
        if not schema.keys() & {"type", "anyOf", "allOf", "enum", "const"}:
            raise SchemaRefused(where, "a schema must have a 'type' key")
        return
    if provider == "openai" and (beside := sorted(schema.keys() - {"$ref", "$defs"})):
        raise SchemaRefused(where, f"$ref cannot have keywords {beside}")
    try:
        resolve(root, schema["$ref"])
    except (KeyError, TypeError) as error:
        raise SchemaRefused(where, f"reference {schema['$ref']!r} leads nowhere") from error


def _check_object(provider: str, schema: Json, where: tuple[str, ...]) -> None:
    if schema.get("additionalProperties") is not False:
        raise SchemaRefused(where, "'additionalProperties' is required to be supplied and false")
    missing = schema.get("properties", {}).keys() - set(schema.get("required", []))
    if provider == "openai" and missing:
        raise SchemaRefused(where, f"'required' must list every property; missing {min(missing)!r}")


def resolve(root: Json, reference: str) -> Json:
    """The schema a local reference such as `#/$defs/Section` names. KeyError if there is none."""
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found[step] if step else found
    if not isinstance(found, dict):
        raise KeyError(reference)
    return found
