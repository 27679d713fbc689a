"""Budgets, spending and admission for tests of the gate."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.db import Database, now
from nightdesk.desk.admission import Order, admit
from nightdesk.desk.queue import Claim
from nightdesk.spend import budgets
from nightdesk.spend.budgets import Budget
from nightdesk.spend.ledger import Entry, book_money
from nightdesk.spend.window import Measure, measure
from nightdesk.states import Phase
from tests.integration.desk_fixtures import PIN, scalar


def usd(amount: object) -> Decimal:
    return Decimal(str(amount))


def set_budget(database: Database, cap: object, name: str = "fleet", **fields: Any) -> Budget:
    budget = Budget(name=name, cap_usd=usd(cap), **fields)
    with database.transaction() as session:
        budgets.save(session, budget, who="test")
    return budget


def spend(
    database: Database, amount: object, at: datetime | None = None, site: str = "garden", phase: str = "draft"
) -> str:
    key = f"call:{uuid.uuid4()}"
    with database.transaction() as session:
        book_money(
            session,
            Entry(key, f"work:{site}:{phase}", "provider:anthropic", usd(amount), at or now(session),
                  site=site, phase=phase),
        )  # fmt: skip
    return key


def take(database: Database, limit: int = 10, **fields: Any) -> list[Claim]:
    values = {"run": "run-a", "phase": Phase.RESEARCH, "lease_s": 900.0, "pin": PIN} | fields
    with database.transaction() as session:
        return admit(session, Order(limit=limit, **values)).claims


def measured(database: Database, name: str = "fleet") -> Measure:
    with database.reading() as session:
        policies = [one for one in budgets.in_force(session) if one.budget.name == name]
        return measure(session, policies)[0]


def count(database: Database, what: str) -> int:
    return int(str(scalar(database, f"SELECT count(*) FROM nightdesk.{what}")))


def decisions(database: Database) -> list[Any]:
    query = """
        SELECT d.*, p.budget FROM nightdesk.budget_decisions d
        JOIN nightdesk.budget_policies p ON p.id = d.policy_id ORDER BY d.id
    """
    with database.reading() as session:
        return list(session.connection().execute(text(query)))


def states(database: Database) -> list[str]:
    with database.reading() as session:
        return list(
            session.connection()
            .execute(text("SELECT state FROM nightdesk.budget_transitions ORDER BY id"))
            .scalars()
        )


def entry_of(claim: Claim, amount: object) -> Entry:
    return Entry(
        f"call:{uuid.uuid4()}", "work:garden:research", "provider:anthropic", usd(amount),
        datetime.now(UTC), job_id=claim.job_id, site=claim.site, phase=claim.phase,
    )  # fmt: skip


def open_call(database: Database, claim: Claim, worst_case: object) -> None:
    execute(
        database,
        "INSERT INTO nightdesk.llm_calls (id, call_key, ask_no, job_id, claim_no, article_id, phase, provider, model,"
        " prompt_version, state, worst_case_usd, max_output_tokens, worst_case_tokens, deadline_at) VALUES (:id, 'k',"
        " 1, :job, :claim_no, :article, 'research', 'anthropic', 'm', 'p', 'sent', :usd, 1, 1,"
        " nightdesk.now() + interval '1 hour')",
        id=uuid.uuid4(), job=claim.job_id, claim_no=claim.claim_no, article=claim.article_id, usd=usd(worst_case),
    )  # fmt: skip


def limit_job(database: Database, article: uuid.UUID, most: object) -> None:
    execute(
        database, "UPDATE nightdesk.jobs SET max_usd = :usd WHERE article_id = :id", usd=usd(most), id=article
    )


def empty(database: Database) -> None:
    """The same database for each example."""
    with database.transaction() as session:
        execute_in(session, "SET LOCAL session_replication_role = replica")
        for table in ("ledger_entries", "spend_sums", "budget_transitions", "budget_policies", "budgets"):
            execute_in(session, f"DELETE FROM nightdesk.{table}")
    database.simulated_now = None


def execute(database: Database, statement: str, **values: object) -> None:
    with database.transaction() as session:
        execute_in(session, statement, **values)


def execute_in(session: Session, statement: str, **values: object) -> None:
    session.connection().execute(text(statement), values)


def move(database: Database, article: uuid.UUID, site: str) -> None:
    execute(database, "UPDATE nightdesk.articles SET site = :site WHERE id = :id", site=site, id=article)
    execute(database, "UPDATE nightdesk.jobs SET site = :site WHERE article_id = :id", site=site, id=article)
