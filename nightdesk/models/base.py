"""What all tables share: the schema, naming of constraints, and the column types."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, DateTime, Identity, MetaData, Numeric, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

metadata = MetaData(
    schema="nightdesk",
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)

NOW = text("nightdesk.now()")
TIMESTAMP = DateTime(timezone=True)
USD = Numeric(20, 10)


class Table(SQLModel):
    """Base of all tables."""

    metadata = metadata


def identity() -> Any:
    """A bigint primary key that the database counts."""
    return Field(
        default=None,
        primary_key=True,
        sa_type=BigInteger,
        sa_column_kwargs={"server_default": Identity(always=True)},
    )


def reference(column: str, *, nullable: bool = False, unique: bool = False) -> Any:
    """A foreign key to a bigint, e.g. `jobs.id`."""
    return Field(
        default=None if nullable else ...,
        sa_type=BigInteger,
        foreign_key=f"nightdesk.{column}",
        nullable=nullable,
        unique=unique,
    )


def timestamp(*, nullable: bool = False, index: bool = False) -> Any:
    """A timestamptz that the writer gives."""
    return Field(default=None, sa_type=TIMESTAMP, nullable=nullable, index=index)


def created() -> Any:
    """A timestamptz that the database fills in with its own time."""
    return Field(default=None, sa_type=TIMESTAMP, nullable=False, sa_column_kwargs={"server_default": NOW})


def usd(default: Decimal | None = Decimal(0), *, nullable: bool = False) -> Any:
    """An amount of money."""
    return Field(default=default, sa_type=USD, nullable=nullable)


def json(*, nullable: bool = False) -> Any:
    """A jsonb document."""
    return Field(default=None if nullable else ..., sa_type=JSONB, nullable=nullable)


def one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    """The column holds a member of the enum."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


__all__ = [
    "NOW",
    "TIMESTAMP",
    "USD",
    "Table",
    "created",
    "datetime",
    "identity",
    "json",
    "metadata",
    "one_of",
    "reference",
    "timestamp",
    "usd",
]
