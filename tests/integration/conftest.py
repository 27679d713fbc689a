"""A real Postgres: the embedded one, or the one named by NIGHTDESK_TEST_DATABASE_URL.

NIGHTDESK_TEST_POOLER_URL: tests reach it through this transaction-mode pooler.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, make_url

from nightdesk.db import Database, parse_url
from nightdesk.embedded import EmbeddedPostgres
from nightdesk.schema import migrate

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[URL]:
    """The address of a database from which others can be made."""
    given = os.environ.get("NIGHTDESK_TEST_DATABASE_URL")
    if given:
        yield parse_url(given)
        return
    embedded = EmbeddedPostgres(Path(tempfile.gettempdir()) / f"nightdesk-tests-{os.geteuid()}")
    embedded.start()
    yield embedded.url("postgres")
    embedded.stop()


@pytest.fixture(scope="session")
def template(server: URL) -> Iterator[str]:
    """A migrated database that tests are cloned from."""
    name = f"nd_template_{os.getpid()}_{next(_numbers)}"
    _execute(server, f"CREATE DATABASE {name}")
    database = Database(server.set(database=name))
    migrate(database)
    database.dispose()
    yield name
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(server: URL, template: str) -> Iterator[Database]:
    """A database of this test's own."""
    name = f"nd_test_{os.getpid()}_{next(_numbers)}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    # Made and removed directly, used through the pooler if there is one: it would keep connections to them.
    pooler = os.environ.get("NIGHTDESK_TEST_POOLER_URL")
    database = Database((parse_url(pooler) if pooler else server).set(database=name))
    yield database
    database.dispose()
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(server: URL, statement: str) -> None:
    database = Database(make_url(server))
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))
    database.dispose()
