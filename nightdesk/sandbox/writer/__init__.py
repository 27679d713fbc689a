"""Writes answers without a model: any JSON schema, and the desk's four phases in readable prose.

The same request and number give the same answer. Nothing here knows the desk's classes: phases are
known by the title of their schema, as a model would know them.
"""

from __future__ import annotations

import random
from typing import Any

from nightdesk.sandbox.writer.bank import load_bank
from nightdesk.sandbox.writer.commission import read_commission
from nightdesk.sandbox.writer.phases import PHASES
from nightdesk.sandbox.writer.schema_values import SchemaWriter

Json = dict[str, Any]


def write_answer(user_text: str, schema: Json | None, number: int) -> Any:
    """The value of an answer: a text without a schema, else an instance of the schema.

    Raises:
        schema_values.Unsatisfiable: if the schema has no finite instance.
    """
    commission = read_commission(user_text)
    bank = load_bank(commission.language)
    chance = random.Random(number)  # noqa: S311  the same number must give the same text
    if schema is None:
        return " ".join(bank.sentences(commission, chance)[:4])
    write = PHASES.get(str(schema.get("title")))
    if write is not None:
        value = write(commission, bank, chance)
        if value.keys() == schema.get("properties", {}).keys():
            return value
    return SchemaWriter(schema, bank.sentences(commission, chance), chance).write()
