"""Budgets: how much money may be spent on what within which time. A change is a new version of it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from sqlalchemy import Row, text
from sqlmodel import Session

from nightdesk.errors import ConfigError
from nightdesk.money import to_scale
from nightdesk.states import OnError, ScopeKind, WindowKind

ROLLING_S = 5 * 3600
_LONGEST_WINDOW_S = 31 * 86_400


class Budget(BaseModel):
    """One version of a budget, as a person writes it. A field that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    cap_usd: Annotated[Decimal, Field(gt=0, lt=Decimal("1e9"), allow_inf_nan=False)]
    window: WindowKind = WindowKind.ROLLING
    window_s: Annotated[int, Field(ge=60, le=_LONGEST_WINDOW_S)] | None = None
    time_zone: str | None = None
    warn_ratio: Annotated[Decimal, Field(gt=0, le=1, allow_inf_nan=False)] = Decimal("0.8")
    scope: ScopeKind = ScopeKind.ALL
    scope_name: str = ""
    cheap_at_warn: bool = False
    priority_at_warn: int | None = None
    on_error: OnError = OnError.OPEN

    @field_validator("cap_usd")
    @classmethod
    def _scaled(cls, value: Decimal) -> Decimal:
        if to_scale(value) <= 0:
            raise ValueError("it is less than the smallest amount that is booked")
        return to_scale(value)

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        try:
            return value if value is None else ZoneInfo(value).key
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise ValueError(f"'{value}' is no time zone: name one such as Europe/Berlin") from None

    @model_validator(mode="before")
    @classmethod
    def _usual_window(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if given.get("window", WindowKind.ROLLING) == WindowKind.ROLLING:
            return {"window_s": ROLLING_S} | {k: v for k, v in given.items() if v is not None}
        return {"time_zone": "UTC"} | {k: v for k, v in given.items() if v is not None}

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.window is WindowKind.DAY and self.window_s is not None:
            raise ValueError("a budget by the day has no window_s: its days are as long as they are")
        if self.window is WindowKind.ROLLING and self.time_zone is not None:
            raise ValueError("a rolling window has no time_zone: it is the same everywhere")
        if (self.scope is ScopeKind.ALL) != (self.scope_name == ""):
            raise ValueError("scope_name names the site or the phase, and nothing if the scope is all")
        return self

    def covers(self, *, site: str, phase: str) -> bool:
        """True if a job of this site and phase is in its scope."""
        return self.scope is ScopeKind.ALL or self.scope_name == {
            ScopeKind.SITE: site, ScopeKind.PHASE: phase,
        }[self.scope]  # fmt: skip


_ADD = text("INSERT INTO nightdesk.budgets (name) VALUES (:name) ON CONFLICT DO NOTHING")

_KNOWS_ZONE = text("SELECT EXISTS (SELECT 1 FROM pg_timezone_names WHERE name = :time_zone)")

_LOCK_ALL = text("SELECT name FROM nightdesk.budgets ORDER BY name FOR UPDATE")

_SAVE = text("""
    INSERT INTO nightdesk.budget_policies (budget, active, cap_usd, window_kind, window_s, time_zone,
        warn_ratio, scope_kind, scope_name, cheap_at_warn, priority_at_warn, on_error, who, why)
    VALUES (:name, :active, :cap_usd, :window, :window_s, :time_zone, :warn_ratio, :scope, :scope_name,
        :cheap_at_warn, :priority_at_warn, :on_error, :who, :why)
    RETURNING id
""")

_NEWEST = text("""
    SELECT p.id, p.active, b.name, p.cap_usd, p.window_kind AS window, p.window_s, p.time_zone, p.warn_ratio,
           p.scope_kind AS scope, p.scope_name, p.cheap_at_warn, p.priority_at_warn, p.on_error
    FROM nightdesk.budgets b CROSS JOIN LATERAL (
        SELECT * FROM nightdesk.budget_policies WHERE budget = b.name ORDER BY id DESC LIMIT 1
    ) p ORDER BY b.name
""")


class Policy(BaseModel):
    """A version of a budget that is in force, with the id by which decisions name it."""

    model_config = ConfigDict(frozen=True)

    id: int
    budget: Budget


def save(session: Session, budget: Budget, *, who: str, why: str = "", active: bool = True) -> bool:
    """Put a version into force at once; False if the one in force says the same.

    It takes the lock that admission takes: who is asking meanwhile is told by the old version or the new.

    Raises:
        ConfigError: if the database does not know the time zone; the gate could not count with it.
    """
    zone = {"time_zone": budget.time_zone}
    if budget.time_zone is not None and not session.connection().execute(_KNOWS_ZONE, zone).scalar():
        raise ConfigError(f"budget {budget.name}: this Postgres knows no time zone '{budget.time_zone}'")
    session.connection().execute(_ADD, {"name": budget.name})
    lock(session)
    now = next((row for row in session.connection().execute(_NEWEST) if row.name == budget.name), None)
    if now is not None and now.active == active and _read(now).budget == budget:
        return False
    values = budget.model_dump() | {"active": active, "who": who, "why": why}
    session.connection().execute(_SAVE, values)
    return True


def lock(session: Session) -> list[str]:
    """Lock all budgets in one order; returns their names. What is read afterwards is read under the lock."""
    return list(session.connection().execute(_LOCK_ALL).scalars())


def in_force(session: Session) -> list[Policy]:
    """The newest version of each budget that limits something."""
    return [_read(row) for row in session.connection().execute(_NEWEST) if row.active]


@dataclass(frozen=True, slots=True)
class Mirrored:
    """A budget and its Prefect block: the block's version, and the policy, when they were last the same."""

    newest: Policy
    active: bool
    block_version: str | None
    block_policy_id: int | None


_MIRRORED = text("SELECT name, block_version, block_policy_id FROM nightdesk.budgets")

_SET_MIRRORED = text("""
    UPDATE nightdesk.budgets SET block_version = :version, block_policy_id = :policy_id WHERE name = :name
""")

_NEWEST_ID = text("SELECT max(id) FROM nightdesk.budget_policies WHERE budget = :name")


def mirrored(session: Session) -> dict[str, Mirrored]:
    """All budgets by name, those that limit nothing any more included."""
    blocks = {row.name: row for row in session.connection().execute(_MIRRORED)}
    return {
        row.name: Mirrored(
            _read(row), row.active, blocks[row.name].block_version, blocks[row.name].block_policy_id
        )
        for row in session.connection().execute(_NEWEST)
    }


def take_over(session: Session, budget: Budget, version: str) -> None:
    """Put into force what this version of the budget's block says.

    Raises:
        ConfigError: see `save`.
    """
    save(session, budget, who="Prefect", why=f"block {budget.name}, {version}")
    # Under the locks of `save`: nothing newer can have come in between.
    policy_id = session.connection().execute(_NEWEST_ID, {"name": budget.name}).scalar_one()
    set_mirrored(session, budget.name, version, policy_id)


def set_mirrored(session: Session, name: str, version: str, policy_id: int) -> None:
    """The block of this version and this policy say the same."""
    values = {"name": name, "version": version, "policy_id": policy_id}
    session.connection().execute(_SET_MIRRORED, values)


def _read(row: Row[Any]) -> Policy:
    fields = dict(row._mapping)
    fields.pop("active")
    return Policy(id=fields.pop("id"), budget=Budget.model_validate(fields))
