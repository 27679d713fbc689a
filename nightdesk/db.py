"""Sessions on Postgres through psycopg 3, fit for a transaction-mode pooler.

Nothing may live in a database session: every setting is `SET LOCAL`, no prepared statements, no
start-up options. The edge (a command, a task, a request) opens `transaction()`, which commits; the
domain's functions take the session, and at most flush.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg import errors as sqlstate
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    InterfaceError,
    InvalidatePoolError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel import Session

from nightdesk.errors import DatabaseError, Transient
from nightdesk.text import storable_json
from nightdesk.world import World

T = TypeVar("T")

SCHEMA = "nightdesk"
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 10_000
#: A pooled connection that was idle for longer is asked whether it is still there before it is used.
PING_AFTER_S = 5.0


def parse_url(url: str) -> URL:
    """A SQLAlchemy URL on psycopg 3 from any `postgres://` or `postgresql://` one.

    Raises:
        DatabaseError: if it names no Postgres.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise DatabaseError(
            "NIGHTDESK_DATABASE_URL is not a URL: it looks like postgresql://user:password@host/name"
        ) from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise DatabaseError(
            f"NIGHTDESK_DATABASE_URL names '{parsed.drivername}': Nightdesk works on Postgres only"
        )
    # Supabase's addresses carry a mark for another client, which libpq refuses.
    return parsed.set(drivername="postgresql+psycopg").difference_update_query(["pgbouncer"])


class Database:
    """A pool of connections and the two ways to use it.

    `simulated_now` makes `nightdesk.now()` answer that instant, in each transaction of this object.
    """

    def __init__(self, url: str | URL, *, pool_size: int = 8) -> None:
        self.url = parse_url(url) if isinstance(url, str) else url
        self.simulated_now: datetime | None = None
        self.engine: Engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=pool_size,
            connect_args={
                "prepare_threshold": None,
                "connect_timeout": 10,
                # A peer that vanished without a word is noticed in a minute, not in two hours.
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
                "tcp_user_timeout": 60_000,
            },
        )
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "checkout", self._require_alive)
        event.listen(self.engine, "checkin", _note_use)
        event.listen(self.engine, "begin", self._begin)
        self._writing = self.engine.execution_options(nightdesk_begin="BEGIN")
        self._reading = self.engine.execution_options(nightdesk_begin="BEGIN READ ONLY")

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A session that commits at the end of the block and rolls back if it raises."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session in a read-only transaction."""
        with Session(self._reading, expire_on_commit=False) as session, session.begin():
            yield session

    def _begin(self, connection: Connection) -> None:
        """Begin a transaction and limit it, in one message.

        psycopg would send its `BEGIN` alone, and each setting is one more round trip: together they cost
        more than the claim of a job.
        """
        options = connection.get_execution_options()
        if "isolation_level" in options:
            return  # SQLAlchemy has told psycopg to begin it, or not to
        statements = ["BEGIN"]
        if begin := options.get("nightdesk_begin"):
            simulated = self.simulated_now.isoformat() if self.simulated_now else ""
            statements = [
                begin,  # never READ WRITE: a database may say that it is only read
                f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}",
                f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}",
                f"SET LOCAL idle_in_transaction_session_timeout = {2 * STATEMENT_TIMEOUT_MS}",
                f"SET LOCAL nightdesk.now = '{simulated}'",
            ]
        connection.connection.driver_connection.autocommit = True  # type: ignore[union-attr]
        connection.exec_driver_sql("; ".join(statements))

    def _require_alive(self, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        """Ask a connection that was idle: the server may have been restarted meanwhile."""
        used = record.info.get("used")
        if used is None or time.monotonic() - used < PING_AFTER_S:
            return
        try:
            self.engine.dialect.do_ping(connection)
        except psycopg.Error as gone:
            raise InvalidatePoolError from gone

    def check(self) -> None:
        """Connect once.

        Raises:
            DatabaseError: with the server's own words if that fails.
        """
        try:
            with self.engine.connect() as connection:
                version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
        except (OperationalError, ProgrammingError) as error:
            where = self.url.set(drivername="postgresql").render_as_string(hide_password=True)
            raise DatabaseError(f"cannot connect to {where}: {_cause(error)}") from None
        if version < 150_000:
            raise DatabaseError(f"this Postgres is version {version // 10_000}: Nightdesk needs 15 or newer")

    def dispose(self) -> None:
        """Close the pool."""
        self.engine.dispose()


def _set_up(connection: Any, _record: ConnectionPoolEntry) -> None:
    # Times leave the database as aware UTC, whatever the server's or the pooler's time zone is.
    connection.adapters.register_loader("timestamptz", _UtcLoader)


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _utc_loader() -> type[Any]:
    from datetime import UTC

    from psycopg.types.datetime import TimestamptzLoader

    class UtcLoader(TimestamptzLoader):
        def load(self, data: Any) -> datetime:
            return super().load(data).astimezone(UTC)

    return UtcLoader


_UtcLoader = _utc_loader()


#: Waits before a transaction is tried again after a fault that passes.
RETRIES_S = (0.2, 1.0, 3.0, 10.0)


def passes(error: BaseException) -> bool:
    """True for faults of the database that pass: it restarts, a connection breaks, a lock is not had.

    psycopg counts lost connections, shutdowns, deadlocks, serialisation failures and timeouts as
    operational; SQLAlchemy adds its pool's own timeout.
    """
    return isinstance(error, OperationalError | InterfaceError | PoolTimeout)


async def transact(
    database: Database,
    world: World,
    work: Callable[[Session], T],
    retries_s: Sequence[float] = RETRIES_S,
) -> T:
    """Run `work` in a transaction of its own, in a thread, again after faults that pass.

    If a connection breaks at the very commit, `work` may have been done and runs again: it must be
    fenced or idempotent. A cancellation waits for the thread: what it commits must not come as a
    surprise to whoever cleans up.

    Raises:
        Transient: if the database does not come back.
    """

    def once() -> T:
        with database.transaction() as session:
            return work(session)

    for delay_s in (*retries_s, None):
        running = asyncio.ensure_future(asyncio.to_thread(once))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            if delay_s is None:
                raise Transient(f"the database does not answer: {_cause(error)}") from error
        await world.sleep(delay_s)
    raise AssertionError("the last try returns or raises")


def explain(error: BaseException) -> str | None:
    """An error of the database that nobody foresaw, in one line for an operator; None for any other."""
    if not isinstance(error, SQLAlchemyError | psycopg.Error):
        return None
    said = _cause(error)
    match getattr(error, "orig", None) or error:
        case sqlstate.ReadOnlySqlTransaction():
            return f"the database is read-only ({said}): NIGHTDESK_DATABASE_URL must name the primary"
        case sqlstate.InsufficientPrivilege():
            return f"the database refuses: {said}; GRANT it to the role that NIGHTDESK_DATABASE_URL names"
        case sqlstate.UndefinedTable() | sqlstate.UndefinedColumn() | sqlstate.UndefinedFunction():
            return f"the database's schema '{SCHEMA}' is not as Nightdesk made it: {said}"
        case sqlstate.LockNotAvailable() | sqlstate.QueryCanceled() | sqlstate.DeadlockDetected():
            return f"the database is busy: {said}; try again"
        case _:
            return f"the database cannot go on: {said}"


def _cause(error: BaseException) -> str:
    original = getattr(error, "orig", None) or error
    return (str(original).strip().splitlines() or [type(original).__name__])[0]


def now(session: Session) -> datetime:
    """The database's time: the only clock that decides anything."""
    return session.connection().execute(text("SELECT nightdesk.now()")).scalar_one()  # type: ignore[no-any-return]


def bind_json(value: Any) -> str | None:
    """A value for `cast(:name AS jsonb)`, cleaned of what jsonb refuses (NUL, surrogates, NaN)."""
    return None if value is None else json.dumps(storable_json(value), ensure_ascii=False)
