"""The Budget blocks and the budgets in the database are kept the same, and what happens to them is told.

What is edited in the Prefect UI is taken over; what is set on the command line is written into the block.
Only the database decides what may be spent: without Prefect, with a block deleted or filled with nonsense,
the last good version holds.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING

from prefect import task
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import BlockDocument
from prefect.events import emit_event
from prefect.exceptions import PrefectHTTPStatusError
from pydantic import ValidationError

from nightdesk.config import load_settings
from nightdesk.connection import open_database
from nightdesk.errors import ConfigError
from nightdesk.validation import wrong_fields
from tasks.retrying import RETRIES

if TYPE_CHECKING:
    from nightdesk.db import Database
    from nightdesk.spend.budgets import Mirrored

log = logging.getLogger(__name__)

#: A budget's block cannot be used; the last good version stays in force.
BUDGET_UNUSABLE = "nightdesk.budget.unusable"
_RESOURCE = "nightdesk.budget."


async def mirror_budgets(database: Database) -> None:
    """Take over what was edited in blocks, write what was set elsewhere into them. It never fails."""
    from nightdesk.spend import budgets

    try:
        async with get_client() as client:
            documents = await _documents(client)
            with database.reading() as session:
                known = budgets.mirrored(session)
            for name, document in documents.items():
                await _mirror(client, database, name, document, known.get(name))
            for name in sorted(known.keys() - documents.keys()):
                await _without_block(client, database, name, known[name])
    except Exception as error:
        log.warning("budgets stay as they are, Prefect's blocks could not be read: %s", error)


async def _documents(client: PrefectClient) -> dict[str, BlockDocument]:
    try:
        found = await client.read_block_documents_by_type("budget", include_secrets=True)
    except PrefectHTTPStatusError as error:
        if error.response.status_code == 404:  # the type is not registered
            return {}
        raise
    return {document.name or "": document for document in found}


async def _mirror(
    client: PrefectClient, database: Database, name: str, document: BlockDocument, known: Mirrored | None
) -> None:
    from blocks.budget import Budget
    from nightdesk.spend import budgets

    version = str(document.updated)
    if known is not None and known.block_version == version:
        if known.block_policy_id != known.newest.id and known.active:
            await _write_block(client, database, known)
        return
    try:
        budget = Budget.read(name, document.data)
        with database.transaction() as session:
            budgets.take_over(session, budget, version)
    except ValidationError as error:
        _unusable(name, version, "; ".join(wrong_fields(error)))
    except (ValueError, ConfigError) as error:
        _unusable(name, version, str(error))


async def _without_block(client: PrefectClient, database: Database, name: str, known: Mirrored) -> None:
    if not known.active:
        return
    if known.block_version is not None and known.block_policy_id == known.newest.id:
        why = "it was deleted; the budget holds until `nightdesk budget drop`"
        _unusable(name, f"after {known.block_version}", why)
    else:
        await _write_block(client, database, known)


async def _write_block(client: PrefectClient, database: Database, known: Mirrored) -> None:
    from blocks.budget import Budget
    from nightdesk.spend import budgets

    name = known.newest.budget.name
    await Budget.aregister_type_and_schema(client=client)
    await Budget.of(known.newest.budget).asave(name, overwrite=True, client=client)
    written = await client.read_block_document_by_name(name, "budget")
    with database.transaction() as session:
        budgets.set_mirrored(session, name, str(written.updated), known.newest.id)


def _unusable(name: str, version: str, why: str) -> None:
    """Said at each tick, told once: the event's id follows from what it says."""
    log.error("the block budget/%s is not used (%s): the last good version stays in force", name, why)
    emit_event(
        BUDGET_UNUSABLE,
        id=uuid.uuid5(uuid.NAMESPACE_OID, f"{BUDGET_UNUSABLE} {name} {version} {why}"),
        resource={"prefect.resource.id": f"{_RESOURCE}{name}", "prefect.resource.name": name},
        payload={"why": why},
    )


def tell_transitions(database: Database) -> int:
    """Say with an event each that budgets changed their state: once per change. Returns how many.

    What cannot be told now, because the database is away, is told by the next tick.
    """
    from nightdesk.db import passes

    try:
        return _tell_transitions(database)
    except Exception as error:
        if not passes(error):
            raise
        log.warning("changes of budgets are told later: %s", error)
        return 0


def _tell_transitions(database: Database) -> int:
    from nightdesk.spend import gate

    with database.reading() as session:
        found = gate.untold(session)
    for one in found:
        emit_event(
            f"{_RESOURCE}{one.state}",
            id=uuid.uuid5(
                uuid.NAMESPACE_OID, f"{database.url.database} transition {one.id} {one.at.isoformat()}"
            ),
            resource={"prefect.resource.id": f"{_RESOURCE}{one.budget}", "prefect.resource.name": one.budget},
            payload={"spent_usd": str(one.spent_usd), "cap_usd": str(one.cap_usd), "at": one.at.isoformat()},
        )
    if found:
        with database.transaction() as session:
            gate.told(session, [one.id for one in found])
    return len(found)


@task(name="watch budgets", persist_result=False, **RETRIES)
async def watch_budgets() -> int:
    """Mirror the blocks, see how far each budget is spent, and tell what has changed; returns how much."""
    from nightdesk.spend import budgets, gate
    from nightdesk.spend.window import measure

    with open_database(load_settings(), upgrade=False) as database:
        await mirror_budgets(database)
        with database.transaction() as session:
            if budgets.lock(session):
                gate.record_states(session, measure(session, budgets.in_force(session)))
        return tell_transitions(database)
