"""The schema and its clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import String, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlmodel.sql.sqltypes import AutoString

from nightdesk.db import Database, now, parse_url
from nightdesk.errors import DatabaseError
from nightdesk.models import metadata
from nightdesk.schema import HEAD, current, migrate


def _differ(
    _context: object, _inspected: object, _column: object, found: object, wanted: object
) -> bool | None:
    """SQLModel's strings are varchar without a length, which is text."""
    return False if isinstance(found, String) and isinstance(wanted, String | AutoString) else None


def test_the_migrations_make_exactly_the_tables_of_the_models(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "version_table_schema": "nightdesk",
                "compare_type": _differ,
                "include_object": lambda thing, name, kind, reflected, other: (
                    getattr(thing, "schema", "nightdesk") == "nightdesk"
                ),
            },
        )
        differences = compare_metadata(context, metadata)
    assert [str(difference)[:200] for difference in differences] == []


def test_the_head_that_the_code_knows_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", "nightdesk:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrating_twice_changes_nothing(database: Database) -> None:
    migrate(database)
    assert current(database) == HEAD


def test_a_schema_newer_than_the_code_is_refused(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE nightdesk.alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match="install the newer one"):
        migrate(database)


def test_the_clock_is_simulated_within_a_transaction_only(database: Database) -> None:
    instant = datetime(2031, 5, 1, 12, tzinfo=UTC)
    database.simulated_now = instant
    with database.transaction() as session:
        assert now(session) == instant
    database.simulated_now = None
    with database.transaction() as session:
        assert abs((now(session) - datetime.now(UTC)).total_seconds()) < 60


def test_the_ledger_cannot_be_edited_deleted_or_emptied(database: Database) -> None:
    add = (
        "INSERT INTO nightdesk.ledger_entries (natural_key, book, debit, credit, amount, unit, memo) "
        "VALUES ('k', 'money', 'a', 'b', 1, 'USD', '')"
    )
    with database.engine.begin() as connection:
        connection.execute(text(add))
    for statement in (
        "UPDATE nightdesk.ledger_entries SET amount = 2",
        "DELETE FROM nightdesk.ledger_entries",
        "TRUNCATE nightdesk.ledger_entries CASCADE",
    ):
        with pytest.raises(DBAPIError, match="append-only"), database.engine.begin() as connection:
            connection.execute(text(statement))


def test_a_database_that_cannot_be_reached_is_one_clear_line() -> None:
    url = URL.create("postgresql+psycopg", username="x", password="secret", host="127.0.0.1", port=1)
    with pytest.raises(DatabaseError) as caught:
        Database(url).check()
    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://u@h/d", "not a url", "sqlite:///x"])
def test_an_address_that_is_no_postgres_is_refused(url: str) -> None:
    with pytest.raises(DatabaseError, match="NIGHTDESK_DATABASE_URL"):
        parse_url(url)


def test_the_usual_spellings_of_a_postgres_address_work() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg2", "postgresql+asyncpg"):
        assert parse_url(f"{scheme}://u:p@h/d").drivername == "postgresql+psycopg"
