"""The ledger balances whatever is booked and reversed, in any order, however often."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from nightdesk.db import Database, now
from nightdesk.insights import money_usd
from nightdesk.spend.ledger import Entry, book_money, reverse

AMOUNTS = st.decimals(min_value=Decimal("0.0000000001"), max_value=Decimal(99999), places=10)


@given(
    acts=st.lists(
        st.one_of(
            st.tuples(st.just("book"), st.integers(0, 5), AMOUNTS),
            st.tuples(st.just("reverse"), st.integers(0, 5), st.just(Decimal(0))),
        ),
        max_size=25,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_event_cannot_be_booked_or_reversed_twice(
    database: Database, acts: list[tuple[str, int, Decimal]]
) -> None:
    booked: dict[int, Decimal] = {}
    reversed_: set[int] = set()
    # The ledger cannot be emptied: the examples of one run share it, and each ends in a rollback.
    with pytest.raises(RuntimeError), database.transaction() as session:
        before = money_usd(session)
        for act, key, amount in acts:
            natural_key = f"call:{key}"
            if act == "book":
                entry = Entry(natural_key, "work:garden:draft", "provider:anthropic", amount, now(session))
                assert book_money(session, entry) == (key not in booked)
                booked.setdefault(key, amount)
            else:
                expected = key in booked and key not in reversed_
                assert reverse(session, natural_key, "test") == expected
                reversed_ |= {key} if expected else set()
        assert money_usd(session) - before == sum(
            (amount for key, amount in booked.items() if key not in reversed_), Decimal(0)
        )
        balance = text(
            "SELECT coalesce(sum(amount), 0) FROM (SELECT debit AS account, amount FROM nightdesk.ledger_entries "
            "UNION ALL SELECT credit, -amount FROM nightdesk.ledger_entries) both_sides"
        )
        assert session.connection().execute(balance).scalar_one() == 0
        raise RuntimeError("roll back")


@pytest.mark.parametrize("amount", [Decimal(0), Decimal(-1)])
def test_nothing_is_booked_for_nothing(database: Database, amount: Decimal) -> None:
    with pytest.raises(ValueError, match="positive"), database.transaction() as session:
        book_money(session, Entry("k", "a", "b", amount, now(session)))
