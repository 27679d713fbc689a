"""Alembic's entry: the connection comes from `nightdesk.schema.migrate` or from NIGHTDESK_DATABASE_URL."""

from __future__ import annotations

import os

from alembic import context
from sqlalchemy import Connection, text

from nightdesk.db import SCHEMA, Database
from nightdesk.models import metadata


def _run(connection: Connection) -> None:
    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=lambda name, kind, _parents: kind != "schema" or name == SCHEMA,
        compare_server_default=False,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    _run(given)
else:
    with Database(os.environ["NIGHTDESK_DATABASE_URL"]).engine.begin() as connection:
        _run(connection)
