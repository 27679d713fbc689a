"""Bringing the schema to the version that this code needs (Alembic, inside the package)."""

from __future__ import annotations

import re

from psycopg import errors as sqlstate
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from nightdesk.db import SCHEMA, Database, explain
from nightdesk.errors import DatabaseError

HEAD = "0005"
_LOCK = 7_269_418_211  # any number of our own: two processes never migrate at once
_OURS = re.compile(r"\d{4}")
_RELATIONS = text("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(:schema)")


def current(database: Database) -> str | None:
    """The schema's version, None if there is none yet."""
    with database.engine.connect() as connection:
        try:
            return connection.execute(text("SELECT version_num FROM nightdesk.alembic_version")).scalar()
        except ProgrammingError:
            return None


def migrate(database: Database) -> None:
    """Upgrade to HEAD; one process at a time, each lock waited for at most 10 s.

    Raises:
        DatabaseError: if the schema is newer than this code or not ours, if it may not be made, or if a
            lock cannot be had.
    """
    version = current(database)
    if version == HEAD:
        return
    if version is not None and _OURS.fullmatch(version) and version > HEAD:
        raise DatabaseError(
            f"the database has schema {version}, this Nightdesk knows up to {HEAD}: install the newer one"
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "nightdesk:migrations")
    with database.engine.begin() as connection:
        role, name = connection.execute(text("SELECT current_user, current_database()")).one()
        try:
            connection.execute(text("SET LOCAL lock_timeout = '10s'"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            _require_ours(connection, current(database), name)
            config.attributes["connection"] = connection
            command.upgrade(config, HEAD)
        except DBAPIError as error:
            if isinstance(error.orig, sqlstate.InsufficientPrivilege):
                raise DatabaseError(
                    f"the role '{role}' may not make Nightdesk's tables ({error.orig.diag.message_primary}): "
                    f'GRANT CREATE ON DATABASE "{name}" TO "{role}"'
                ) from None
            raise DatabaseError(f"the schema could not be upgraded: {explain(error)}") from None


def _require_ours(connection: Connection, version: str | None, name: str) -> None:
    """Nothing is made or changed in a schema that something else has made."""
    if version is None:
        foreign = connection.execute(_RELATIONS, {"schema": SCHEMA}).scalar_one() > 0
    else:
        foreign = not _OURS.fullmatch(version)
    if foreign:
        raise DatabaseError(
            f"the database '{name}' has a schema '{SCHEMA}' that is not Nightdesk's: name another database "
            "in NIGHTDESK_DATABASE_URL"
        )
