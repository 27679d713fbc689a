"""What a budget counts, from when to when, and the moment at which it opens again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from nightdesk.db import Database
from nightdesk.errors import ConfigError
from nightdesk.spend import budgets
from nightdesk.spend.ledger import reverse
from nightdesk.spend.window import reopens_at
from tests.integration.desk_fixtures import add_articles
from tests.integration.money_fixtures import count, empty, measured, set_budget, spend, take, usd

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOURS_5 = timedelta(hours=5)


# ── what is counted ───────────────────────────────────────────────────────────────────────────────────


def test_money_counts_for_exactly_the_length_of_the_window(database: Database) -> None:
    set_budget(database, 100)
    database.simulated_now = START
    spend(database, 7)
    for passed, seen in (
        (timedelta(0), 7),
        (HOURS_5 - timedelta(microseconds=1), 7),
        (HOURS_5, 0),
        (HOURS_5 + timedelta(days=1), 0),
    ):
        database.simulated_now = START + passed
        assert measured(database).spent_usd == seen, passed


AMOUNTS = st.decimals(min_value="0.0000000001", max_value="50", places=10)
OFFSETS = st.one_of(
    st.integers(0, 6 * 3600 * 10**6),
    st.sampled_from([0, 1, 999_999, 10**6, 60 * 10**6, 3600 * 10**6, 5 * 3600 * 10**6]),
)


@given(
    spent=st.lists(st.tuples(AMOUNTS, OFFSETS, st.booleans()), max_size=12),
    looked=OFFSETS,
    window_s=st.sampled_from([60, 61, 3600, 18_000]),
    site=st.sampled_from(["garden", "kitchen"]),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_sum_is_that_of_the_entries_to_the_last_digit(
    database: Database, spent: list[tuple[Decimal, int, bool]], looked: int, window_s: int, site: str
) -> None:
    empty(database)
    set_budget(database, 100, "whole", window_s=window_s)
    set_budget(database, 100, "site", window_s=window_s, scope="site", scope_name=site)
    moments = [(amount, START + timedelta(microseconds=at), undone) for amount, at, undone in spent]
    for number, (amount, at, undone) in enumerate(moments):
        key = spend(database, amount, at, site="garden" if number % 2 else "kitchen")
        if undone:
            with database.transaction() as session:
                reverse(session, key, "not billed after all")
    database.simulated_now = START + timedelta(microseconds=looked)
    edge = database.simulated_now - timedelta(seconds=window_s)
    inside = [
        (number, amount) for number, (amount, at, undone) in enumerate(moments) if at > edge and not undone
    ]
    assert measured(database, "whole").spent_usd == sum((amount for _, amount in inside), Decimal(0))
    theirs = [amount for number, amount in inside if ("garden" if number % 2 else "kitchen") == site]
    assert measured(database, "site").spent_usd == sum(theirs, Decimal(0))


@pytest.mark.parametrize(
    ("zone", "before", "after"),
    [
        ("Asia/Tokyo", "2026-06-10T14:59:59.999999Z", "2026-06-10T15:00:00Z"),
        ("Europe/Berlin", "2026-03-28T22:59:59.999999Z", "2026-03-28T23:00:00Z"),  # a day of 23 hours begins
        ("Europe/Berlin", "2026-10-25T22:59:59.999999Z", "2026-10-25T23:00:00Z"),  # one of 25 has ended
        ("Australia/Lord_Howe", "2026-04-04T12:59:59.999999Z", "2026-04-04T13:00:00Z"),
    ],
)
def test_a_day_begins_at_midnight_of_its_zone(database: Database, zone: str, before: str, after: str) -> None:
    set_budget(database, 100, window="day", time_zone=zone)
    spend(database, 3, datetime.fromisoformat(before))
    spend(database, 4, datetime.fromisoformat(after))
    database.simulated_now = datetime.fromisoformat(before)
    assert measured(database).spent_usd == 7, "what is dated ahead counts: a clock that jumps opens nothing"
    with database.reading() as session:
        found = measured(database)
        assert reopens_at(session, found, usd(99)) == datetime.fromisoformat(after)
    database.simulated_now = datetime.fromisoformat(after)
    assert measured(database).spent_usd == 4


# ── it opens again by itself ─────────────────────────────────────────────────────────────────────


def test_the_gate_reopens_by_itself_at_the_very_moment_that_was_forecast(database: Database) -> None:
    add_articles(database, "one")
    set_budget(database, 100)
    database.simulated_now = START
    for minute, amount in enumerate((50, 40, 30, 36)):
        spend(database, amount, START - timedelta(hours=4, minutes=50 - minute, seconds=-7.25))
    assert measured(database).spent_usd == 156
    assert take(database) == []
    with database.reading() as session:
        at = reopens_at(session, measured(database), usd(2))
    # $58 must roll out: the first two entries do.
    assert at == START - timedelta(hours=4, minutes=49, seconds=-7.25) + HOURS_5
    database.simulated_now = at - timedelta(microseconds=1)
    assert take(database) == []
    database.simulated_now = at
    assert len(take(database)) == 1


@given(
    spent=st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 18_000 * 10**6 - 1)), min_size=1, max_size=15
    ),
    need=st.integers(1, 30),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_forecast_is_the_first_moment_at_which_the_task_fits(
    database: Database, spent: list[tuple[int, int]], need: int
) -> None:
    empty(database)
    set_budget(database, 30)
    database.simulated_now = START
    for amount, ago in spent:
        spend(database, amount, START - timedelta(microseconds=ago))
    with database.reading() as session:
        at = reopens_at(session, measured(database), usd(need))
    total = sum(amount for amount, _ in spent)
    if total + need <= 30:
        assert at is None
        return
    assert at is not None
    assert room_at(database, at) >= need
    assert room_at(database, at - timedelta(microseconds=1)) < need


def room_at(database: Database, at: datetime) -> Decimal:
    database.simulated_now = at
    return 30 - measured(database).spent_usd


def test_a_task_that_is_dearer_than_the_cap_has_no_moment(database: Database) -> None:
    set_budget(database, 10)
    spend(database, 3)
    with database.reading() as session:
        assert reopens_at(session, measured(database), usd(11)) is None


def test_a_cap_that_is_raised_holds_at_once_and_changes_nothing_that_was_measured(database: Database) -> None:
    add_articles(database, *[f"topic {number}" for number in range(4)])
    set_budget(database, 100)
    spend(database, 156)
    assert take(database) == []
    set_budget(database, 160)
    assert measured(database).spent_usd == 156
    assert len(take(database)) == 2
    set_budget(database, 150)
    assert take(database) == []


def test_saving_what_is_in_force_makes_no_new_version(database: Database) -> None:
    budget = set_budget(database, 100)
    with database.transaction() as session:
        assert budgets.save(session, budget, who="somebody else") is False
        assert budgets.save(session, budget, who="somebody", active=False) is True
        assert budgets.in_force(session) == []
        assert budgets.save(session, budget, who="somebody") is True
    assert count(database, "budget_policies") == 3


# ── what it stands on ────────────────────────────────────────────────────────────────────────────


def test_an_ask_touches_the_same_rows_whatever_the_ledger_holds(database: Database) -> None:
    set_budget(database, 10**6)
    database.simulated_now = START
    fill = text("""
        INSERT INTO nightdesk.ledger_entries
            (natural_key, book, debit, credit, amount, unit, occurred_at, site, phase, memo)
        SELECT 'x:' || :prefix || n, 'money', 'work', 'provider', 0.001, 'USD',
               cast(:start AS timestamptz) - n * interval '18000 s' / :entries, 'garden', 'draft', ''
        FROM generate_series(0, :entries - 1) n
    """)
    read = []
    for prefix, entries in (("few", 18_000), ("many", 72_000)):
        with database.transaction() as session:
            session.connection().execute(text("SET LOCAL statement_timeout = 0"))
            session.connection().execute(fill, {"prefix": prefix, "entries": entries, "start": START})
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE nightdesk.ledger_entries, nightdesk.spend_sums"))
        read.append(rows_read(database))
    assert read[1] <= read[0] + 12, "the second that the edge cuts"


def rows_read(database: Database) -> int:
    """Rows that the nodes of the plan of one measure return."""

    def walk(node: dict[str, Any]) -> int:
        own = node["Actual Rows"] * node["Actual Loops"] if "Relation Name" in node else 0
        return int(own) + sum(walk(child) for child in node.get("Plans", ()))

    from nightdesk.spend.window import _MEASURE

    with database.reading() as session:
        policies = [one.id for one in budgets.in_force(session)]
        explain = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {_MEASURE.text}")
        plan = session.connection().execute(explain, {"policies": policies}).scalar_one()
    return walk(plan[0]["Plan"])


def test_a_time_zone_that_only_python_knows_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightdesk.spend.budgets.ZoneInfo", lambda key: SimpleNamespace(key=key))
    with pytest.raises(ConfigError, match="Mars/Olympus"):
        set_budget(database, 5, window="day", time_zone="Mars/Olympus")
    assert count(database, "budget_policies") == 0
