"""What pydantic found wrong, in words for a person."""

from __future__ import annotations

from pydantic import ValidationError


def wrong_fields(error: ValidationError, whole: str = "the whole") -> list[str]:
    """One `field: what is wrong with it` each, without the values (a key may be among them).

    `whole` stands where the fault is of no single field.
    """
    return [
        f"{'.'.join(str(part) for part in one['loc']) or whole}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False)
    ]
