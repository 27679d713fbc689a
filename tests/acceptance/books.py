"""What must be true of a demo's database, pages and journal, however often it was killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sqlalchemy import text

from nightdesk.db import Database
from nightdesk.sandbox import read_journal
from tests.acceptance.demo_run import data_folder


def each_article_has_exactly_one_page(home: Path, database: Database) -> None:
    pages = [
        path.read_text(encoding="utf-8") for path in (data_folder(home) / "sites").glob("*/*/index.html")
    ]
    with database.reading() as session:
        published = session.connection().execute(
            text("SELECT article_id FROM nightdesk.publications WHERE state = 'verified'")
        ).scalars().all()  # fmt: skip
    assert len(pages) == len(published)
    for article in published:
        assert sum(f"<!-- nightdesk:{article} -->" in page for page in pages) == 1


def no_stored_answer_was_bought_again(database: Database) -> None:
    again = text("""
        SELECT later.id FROM nightdesk.llm_calls stored JOIN nightdesk.llm_calls later
          ON later.call_key = stored.call_key AND later.ask_no = stored.ask_no AND later.id <> stored.id
        WHERE stored.state IN ('answered', 'rejected') AND later.sent_at >= stored.ended_at
    """)
    with database.reading() as session:
        assert session.connection().execute(again).all() == []


def what_was_billed_is_booked(home: Path, database: Database) -> None:
    entries = read_journal(data_folder(home) / "journal.jsonl")
    asked = Counter(entry.client_request_id for entry in entries)
    assert max(asked.values()) == 1
    net = text("""
        SELECT call_id, sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END) AS usd
        FROM nightdesk.ledger_entries WHERE book = 'money' GROUP BY call_id
    """)
    with database.reading() as session:
        booked = {str(row.call_id): row.usd for row in session.connection().execute(net)}
        states = {
            str(row.id): row.state
            for row in session.connection().execute(text("SELECT id, state FROM nightdesk.llm_calls"))
        }
    for entry in entries:
        if entry.billed_usd > 0:
            call_id = entry.client_request_id or ""
            if states[call_id] in ("answered", "rejected"):
                assert booked[call_id] == entry.billed_usd
            else:
                assert states[call_id] == "unknown"
                assert booked[call_id] >= entry.billed_usd


def nothing_is_held(database: Database) -> None:
    with database.reading() as session:
        held = session.connection().execute(
            text("SELECT count(*) FROM nightdesk.jobs WHERE state IN ('leased', 'failed')")
        )
        assert held.scalar() == 0


def no_run_died(database: Database) -> None:
    with database.reading() as session:
        assert session.connection().execute(text("SELECT sum(deaths) FROM nightdesk.jobs")).scalar() == 0
