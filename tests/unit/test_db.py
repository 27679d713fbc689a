"""Errors of the database in words for an operator."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors as sqlstate
from sqlalchemy.exc import DBAPIError, NoResultFound
from sqlalchemy.exc import TimeoutError as PoolTimeout

from nightdesk.db import Database, explain
from nightdesk.errors import DatabaseError

FOREIGN = [
    name for name in vars(sqlstate).values() if isinstance(name, type) and issubclass(name, psycopg.Error)
]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sqlstate.ReadOnlySqlTransaction("cannot execute INSERT"), "must name the primary"),
        (sqlstate.InsufficientPrivilege("permission denied"), "GRANT it to the role"),
        (sqlstate.UndefinedTable('relation "x" does not exist'), "not as Nightdesk made it"),
        (sqlstate.LockNotAvailable("canceling statement"), "try again"),
        (sqlstate.NumericValueOutOfRange("integer out of range"), "integer out of range"),
    ],
)
def test_an_error_of_the_database_says_what_happened_and_what_to_do(error: psycopg.Error, said: str) -> None:
    wrapped = DBAPIError.instance("SELECT secret", {}, error, psycopg.Error)
    assert said in str(explain(error))
    assert explain(wrapped) == explain(error)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_error_of_the_driver_is_one_line(kind: type[psycopg.Error]) -> None:
    for error in (kind("first line\nDETAIL: second"), kind()):
        said = explain(error)
        assert said is not None
        assert "\n" not in said


def test_errors_of_the_layer_above_are_explained_and_bugs_are_not() -> None:
    assert "timeout" in str(explain(PoolTimeout("QueuePool timeout")))
    assert explain(NoResultFound("no row")) is not None
    assert explain(ValueError("a bug")) is None


def test_an_address_is_shown_without_driver_and_password() -> None:
    with pytest.raises(DatabaseError) as caught:
        Database("postgresql://u:secret@127.0.0.1:1/x").check()
    assert "postgresql://u:***@127.0.0.1:1/x" in str(caught.value)
