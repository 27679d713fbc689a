"""Bringing the schema to the version that this code needs (Alembic, inside the package)."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.exc import OperationalError, ProgrammingError

from nightdesk.db import Database
from nightdesk.errors import DatabaseError

HEAD = "0004"
_LOCK = 7_269_418_211  # any number of our own: two processes never migrate at once


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
        DatabaseError: if the schema is newer than this code, or a lock cannot be had.
    """
    version = current(database)
    if version == HEAD:
        return
    if version is not None and version > HEAD:
        raise DatabaseError(
            f"the database has schema {version}, this Nightdesk knows up to {HEAD}: install the newer one"
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "nightdesk:migrations")
    with database.engine.begin() as connection:
        try:
            connection.execute(text("SET LOCAL lock_timeout = '10s'"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            config.attributes["connection"] = connection
            command.upgrade(config, HEAD)
        except OperationalError as error:
            cause = str(error.orig).strip().splitlines()[0]
            raise DatabaseError(f"the schema could not be upgraded: {cause}; try again") from None
