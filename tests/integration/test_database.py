"""The transactions of `nightdesk.db`: their limits, their one message, and connections that were cut."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, OperationalError

from nightdesk import db
from nightdesk.db import Database, now

SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "nightdesk.now")
SHOW = text("SELECT name, current_setting(name, true) FROM unnest(cast(:names AS text[])) name")
PID = text("SELECT pg_backend_pid()")


def settings(connection: Any) -> dict[str, str | None]:
    return {name: value or None for name, value in connection.execute(SHOW, {"names": list(SETTINGS)})}


def test_every_transaction_is_limited_and_nothing_of_it_stays_in_the_session(database: Database) -> None:
    with database.engine.connect() as connection:
        outside = settings(connection)
    database.simulated_now = datetime(2026, 3, 1, tzinfo=UTC)
    for opened in (database.transaction, database.reading):
        with opened() as session:
            assert settings(session.connection()) == {
                "statement_timeout": "30s",
                "lock_timeout": "10s",
                "idle_in_transaction_session_timeout": "1min",
                "nightdesk.now": "2026-03-01T00:00:00+00:00",
            }
            assert now(session) == database.simulated_now
        with database.engine.connect() as connection:
            assert settings(connection) == outside


def test_a_transaction_begins_with_one_message(database: Database) -> None:
    sent: list[str] = []
    event.listen(
        database.engine,
        "before_cursor_execute",
        lambda _c, _cursor, statement, *_rest: sent.append(statement),
    )
    with database.transaction() as session:
        session.connection().execute(PID)
    begin, *rest = sent
    assert begin.startswith("BEGIN; SET LOCAL")
    assert rest == [str(PID)]


def test_what_only_reads_may_not_write(database: Database) -> None:
    with pytest.raises(DBAPIError, match="read-only"), database.reading() as session:
        session.connection().execute(text("DELETE FROM nightdesk.jobs"))


def test_what_raises_is_rolled_back_and_what_does_not_is_committed(database: Database) -> None:
    add = text(
        "INSERT INTO nightdesk.lane_transitions (kind, name, change, reason) VALUES ('site', 'a', 'opened', 'x')"
    )
    count = text("SELECT count(*) FROM nightdesk.lane_transitions")
    with pytest.raises(RuntimeError), database.transaction() as session:
        session.connection().execute(add)
        raise RuntimeError
    with database.reading() as session:
        assert session.connection().execute(count).scalar() == 0
    with database.transaction() as session:
        session.connection().execute(add)
    with database.engine.begin() as connection:
        connection.execute(add)
    with database.reading() as session:
        assert session.connection().execute(count).scalar() == 2


def cut(database: Database) -> None:
    """What a restart of the server does to a connection that lies in the pool."""
    with database.reading() as session:
        pid = session.connection().execute(PID).scalar_one()
    other = Database(database.url)
    with other.transaction() as session:
        session.connection().execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    other.dispose()


def test_a_connection_that_was_cut_while_it_lay_idle_is_replaced_unseen(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "PING_AFTER_S", 0.0)
    cut(database)
    with database.reading() as session:
        assert session.connection().execute(text("SELECT 1")).scalar() == 1


def test_one_that_was_cut_a_moment_ago_fails_as_a_fault_that_passes(database: Database) -> None:
    cut(database)
    with pytest.raises(OperationalError) as gone, database.reading() as session:
        session.connection().execute(PID)
    assert db.passes(gone.value)
    with database.reading() as session:
        assert session.connection().execute(text("SELECT 1")).scalar() == 1


def test_a_database_that_says_it_is_only_read_is_not_written(database: Database) -> None:
    with database.engine.begin() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    database.dispose()
    with pytest.raises(DBAPIError, match="read-only"), database.transaction() as session:
        session.connection().execute(text("DELETE FROM nightdesk.jobs"))
