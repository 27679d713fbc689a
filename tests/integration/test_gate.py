"""The gate: new work is admitted as far as the budgets have room, and not one cent further."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy.exc import OperationalError

from nightdesk import db
from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.admission import Admission, Order, admit
from nightdesk.desk.queue import Claim, Pin
from nightdesk.spend import budgets, gate
from nightdesk.spend.ledger import book_money, reverse
from nightdesk.states import BudgetState, Phase
from tests.integration.desk_fixtures import LIMITS, PIN, add_articles
from tests.integration.money_fixtures import (
    count,
    decisions,
    entry_of,
    execute,
    limit_job,
    measured,
    move,
    open_call,
    set_budget,
    spend,
    states,
    take,
    usd,
)

# ── what is admitted ─────────────────────────────────────────────────────────────────────────────


def test_without_a_budget_everything_is_admitted_and_nothing_is_recorded(database: Database) -> None:
    add_articles(database, "one", "two")
    assert len(take(database)) == 2
    assert count(database, "budget_decisions") == 0


def test_jobs_are_admitted_while_the_most_they_may_spend_fits(database: Database) -> None:
    add_articles(database, *[f"topic {number}" for number in range(5)])
    set_budget(database, 5)  # a job may spend $2
    assert len(take(database)) == 2
    assert take(database) == []
    found = measured(database)
    assert (found.spent_usd, found.held_usd) == (0, 4)
    (decision, refusal) = decisions(database)
    assert (decision.admitted, decision.refused_usd, decision.held_usd) == (2, 2, 0)
    assert (refusal.admitted, refusal.refused_usd, refusal.held_usd) == (0, 2, 4)


def test_a_hold_falls_with_each_booking_and_ends_with_its_lease(database: Database) -> None:
    add_articles(database, "one", "two")
    set_budget(database, 3)
    (claim,) = take(database)
    with database.transaction() as session:
        book_money(session, entry_of(claim, "0.50"))
    assert (measured(database).spent_usd, measured(database).held_usd) == (usd("0.5"), usd("1.5"))
    with database.transaction() as session:
        queue.finish(session, claim)
    assert (measured(database).spent_usd, measured(database).held_usd) == (usd("0.5"), 0)
    assert len(take(database)) == 1


def test_a_call_in_flight_holds_its_worst_case_whatever_becomes_of_the_lease(database: Database) -> None:
    add_articles(database, "one")
    set_budget(database, 3)
    (claim,) = take(database)
    open_call(database, claim, "1.25")
    assert measured(database).held_usd == 2
    with database.transaction() as session:
        queue.hand_back_run(session, "run-a")
    assert measured(database).held_usd == usd("1.25")


def test_a_phase_that_asks_no_model_goes_on_when_all_is_spent(database: Database) -> None:
    (article,) = add_articles(database, "one")
    with database.transaction() as session:
        queue.add_job(session, article, Phase.PUBLISH, 1, LIMITS)
    set_budget(database, 1)
    spend(database, 5)
    assert take(database) == []
    assert len(take(database, phase=Phase.PUBLISH, pin=Pin())) == 1
    assert measured(database).held_usd == 0


def test_a_cheaper_job_never_overtakes_the_first_that_does_not_fit(database: Database) -> None:
    dear, cheap = add_articles(database, "dear", "cheap")
    limit_job(database, dear, 8)
    limit_job(database, cheap, 1)
    set_budget(database, 5)
    assert take(database) == []
    (refusal,) = decisions(database)
    assert refusal.refused_usd == 8


def test_the_budget_of_one_site_stops_that_site_and_lets_the_others_pass(database: Database) -> None:
    add_articles(database, *[f"garden {number}" for number in range(12)])
    (article,) = add_articles(database, "kitchen")
    move(database, article, "kitchen")
    set_budget(database, 3, "the-garden", scope="site", scope_name="garden")
    set_budget(database, 100)
    assert sorted(claim.site for claim in take(database, limit=3)) == ["garden", "kitchen"]


def test_several_budgets_all_have_to_agree_and_each_says_what_it_refused(database: Database) -> None:
    add_articles(database, "one", "two", "three")
    set_budget(database, 100)
    set_budget(database, 4, "writing", scope="phase", scope_name="research")
    set_budget(database, 1, "drafts", scope="phase", scope_name="draft")
    assert len(take(database)) == 2
    named = {row.budget: row for row in decisions(database)}
    assert set(named) == {"fleet", "writing"}, "a budget that does not cover a job has no say"
    assert named["fleet"].refused_usd is None
    assert named["writing"].refused_usd == 2


# ── states and alerts ────────────────────────────────────────────────────────────────────────────


def test_each_change_of_state_is_recorded_once_and_flapping_is_none(database: Database) -> None:
    set_budget(database, 100)
    keys = {}
    # A figure books as much, a name takes back what was booked under it.
    for step, expected in (
        (70, []), (7, []), (2, []), (1.5, ["warn"]), ("1.5", ["warn"]), (1.5, ["warn"]), ("1.5", ["warn"]),
        ("2", ["warn", "none"]), (30, ["warn", "none", "cap"]), ("7", ["warn", "none", "cap"]),
        ("30", ["warn", "none", "cap", "none"]),
    ):  # fmt: skip
        if isinstance(step, str):
            with database.transaction() as session:
                assert reverse(session, keys.pop(step), "not billed after all")
        else:
            keys[str(step)] = spend(database, step)
        with database.transaction() as session:
            asked = gate.ask(session)
            assert asked is not None
            gate.record(session, asked, run="run-a", phase="draft")
        assert states(database) == expected, step


def test_spent_to_the_cap_exactly_is_the_cap(database: Database) -> None:
    set_budget(database, "0.3")
    for _ in range(3):
        spend(database, "0.1")
    assert gate.state(measured(database)) is BudgetState.CAP


def test_over_its_warning_a_budget_gives_draft_the_cheap_model_and_lets_topics_below_a_priority_wait(
    database: Database,
) -> None:
    low, high = add_articles(database, "low", "high")
    with database.transaction() as session:
        for article in (low, high):
            queue.add_job(session, article, Phase.DRAFT, 1, LIMITS)
    execute(database, "UPDATE nightdesk.jobs SET priority = 5 WHERE article_id = :id", id=high)
    set_budget(database, 100, cheap_at_warn=True, priority_at_warn=5)
    spend(database, 85)
    (claim,) = take(database, phase=Phase.DRAFT, cheap_model="claude-haiku-5-5")
    assert (claim.article_id, claim.model) == (high, "claude-haiku-5-5")


# ── many at once ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("agents", [10, 50])
def test_however_many_ask_at_once_the_cap_is_not_passed(database: Database, agents: int) -> None:
    add_articles(database, *[f"topic {number}" for number in range(2 * agents)])
    set_budget(database, 21)
    claims: list[Claim] = []
    start = threading.Barrier(agents)

    def one(number: int) -> None:
        mine = Database(database.url, pool_size=1)
        start.wait()
        claims.extend(take(mine, limit=1, run=f"run-{number}"))
        mine.dispose()

    threads = [threading.Thread(target=one, args=[number]) for number in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({claim.job_id for claim in claims}) == len(claims) == 10


def test_who_waited_for_the_lock_measures_what_was_admitted_before(database: Database) -> None:
    add_articles(database, "one", "two")
    set_budget(database, 3)
    second: list[list[Claim]] = []
    other = Database(database.url)
    with database.transaction() as session:
        first = admit(session, Order("run-a", Phase.RESEARCH, 1, 900.0, PIN)).claims
        waiting = threading.Thread(target=lambda: second.append(take(other, run="run-b")))
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive(), "it waits for the budgets"
    waiting.join()
    other.dispose()
    assert (len(first), second) == (1, [[]])


# ── when the gate itself is out of order ─────────────────────────────────────────────────────────


def broken(database: Database, what: str = "ALTER TABLE nightdesk.spend_sums RENAME TO lost") -> None:
    execute(database, what)


def admission(database: Database, phase: Phase = Phase.RESEARCH) -> Admission:
    with database.transaction() as session:
        return admit(session, Order("run-a", phase, 10, 900.0, PIN))


def test_a_gate_that_is_out_of_order_lets_work_begin_and_says_why(database: Database) -> None:
    add_articles(database, "one")
    set_budget(database, 1)
    broken(database)
    found = admission(database)
    assert len(found.claims) == 1
    assert "spend_sums" in str(found.gate_error)


def test_a_budget_may_ask_that_nothing_begins_without_the_gate(database: Database) -> None:
    add_articles(database, "one")
    set_budget(database, 100, on_error="closed")
    broken(database)
    found = admission(database)
    assert found.claims == []
    assert "spend_sums" in str(found.gate_error)


def test_a_site_whose_budget_asks_that_waits_alone(database: Database) -> None:
    _garden, kitchen = add_articles(database, "one", "two")
    move(database, kitchen, "kitchen")
    set_budget(database, 100, scope="site", scope_name="garden", on_error="closed")
    broken(database)
    assert [claim.site for claim in admission(database).claims] == ["kitchen"]


@pytest.mark.parametrize(
    "table", ["budgets", "budget_policies", "budget_decisions", "budget_transitions", "spend_sums"]
)
def test_whichever_table_is_missing_work_goes_on(database: Database, table: str) -> None:
    add_articles(database, "one")
    set_budget(database, 100)
    broken(database, f"ALTER TABLE nightdesk.{table} RENAME TO lost")
    found = admission(database)
    assert len(found.claims) == 1
    assert "does not exist" in str(found.gate_error)


def test_a_lock_that_is_not_had_is_a_fault_that_passes_and_opens_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_articles(database, "one")
    set_budget(database, 100)
    monkeypatch.setattr(db, "LOCK_TIMEOUT_MS", 200)
    other = Database(database.url)
    with other.transaction() as session:
        budgets.lock(session)
        with pytest.raises(OperationalError) as busy:
            admission(database)
    other.dispose()
    assert db.passes(busy.value)
    assert len(admission(database).claims) == 1
