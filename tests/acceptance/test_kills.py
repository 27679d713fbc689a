"""The demo is killed or stopped at random moments and started again: nothing is lost or paid for twice.

NIGHTDESK_TEST_KILLS sets how many kills each test makes (`make test-kills`: ten), NIGHTDESK_TEST_KILL_SEED when.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from nightdesk.db import Database
from nightdesk.sandbox import read_journal
from tests.acceptance.demo_run import data_folder, demo_database, remove_cluster, run_demo, start_demo

KILLS = int(os.environ.get("NIGHTDESK_TEST_KILLS", "4"))
SEED = int(os.environ.get("NIGHTDESK_TEST_KILL_SEED", str(random.SystemRandom().randrange(10**6))))


@pytest.mark.timeout(60 + 30 * KILLS)
@pytest.mark.parametrize("victim", ["parent", "group", "polite"])
def test_a_demo_that_is_killed_again_and_again_ends_as_if_it_had_not_been(
    tmp_path: Path, victim: str
) -> None:
    chance = random.Random(f"{SEED} {victim}")
    for _ in range(KILLS):
        demo = start_demo(tmp_path, "--latency", "0.6")
        time.sleep(chance.uniform(0.8, 6.0))
        match victim:
            case "parent":
                os.kill(demo.pid, signal.SIGKILL)
            case "group":
                os.killpg(demo.pid, signal.SIGKILL)
            case _:
                os.kill(demo.pid, chance.choice([signal.SIGINT, signal.SIGTERM]))
        demo.communicate(timeout=30)
    report, _ = run_demo(tmp_path, "--latency", "0.6")
    try:
        states = Counter(one["state"] for one in report["articles"])
        assert states == {"published": len(report["articles"]) - 2, "needs_review": 1, "dead": 1}
        assert all(one["live"] for one in report["articles"] if one["state"] == "published")
        with demo_database(tmp_path) as database:
            _each_article_has_exactly_one_page(tmp_path, database)
            _no_stored_answer_was_bought_again(database)
            _what_was_billed_is_booked(tmp_path, database)
    finally:
        remove_cluster(tmp_path)


def _each_article_has_exactly_one_page(home: Path, database: Database) -> None:
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


def _no_stored_answer_was_bought_again(database: Database) -> None:
    again = text("""
        SELECT later.id FROM nightdesk.llm_calls stored JOIN nightdesk.llm_calls later
          ON later.call_key = stored.call_key AND later.ask_no = stored.ask_no AND later.id <> stored.id
        WHERE stored.state IN ('answered', 'rejected') AND later.sent_at >= stored.ended_at
    """)
    with database.reading() as session:
        assert session.connection().execute(again).all() == []


def _what_was_billed_is_booked(home: Path, database: Database) -> None:
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
