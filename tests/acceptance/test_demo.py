"""The demo: every topic ends where it should, every page is live, and the books agree with the provider."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from nightdesk.insights import money_usd
from nightdesk.publishing.serve import LoopbackServer
from nightdesk.sandbox import read_journal
from tests.acceptance.demo_run import data_folder, demo_database, remove_cluster, run_demo

TOPICS = Path(__file__).parents[2] / "examples" / "topics.csv"
#: USD per million tokens, copied by hand from the providers' price lists: input, output, cache read, cache write.
PRICES = {
    "claude-sonnet-5-5": ("2", "10", "0.1", "2.5"),
    "claude-haiku-5-5": ("0.1", "0.5", "0.01", "0.125"),
}

pytestmark = pytest.mark.timeout(1000)


@dataclass
class Demo:
    home: Path
    report: dict[str, Any]
    printed: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    home = tmp_path_factory.mktemp("home")
    yield Demo(home, *run_demo(home))
    remove_cluster(home)


def test_every_topic_of_the_file_is_in_a_final_state(demo: Demo) -> None:
    with TOPICS.open(encoding="utf-8") as file:
        asked = {row["topic"] for row in csv.DictReader(file)}
    states = {one["topic"]: one["state"] for one in demo.report["articles"]}
    assert states.keys() == asked
    assert len(asked) >= 12
    assert set(states.values()) == {"published", "needs_review", "dead"}
    assert demo.report["totals"]["published"] == len(asked) - 2


def test_it_names_the_two_that_went_wrong_with_their_reasons(demo: Demo) -> None:
    wrong = {one["state"]: one for one in demo.report["articles"] if one["state"] != "published"}
    assert "placeholder_todo" in {reason["rule"] for reason in wrong["needs_review"]["reasons"]}
    assert "[TODO" in wrong["needs_review"]["reasons"][0]["passage"]
    assert "prompt is too long" in wrong["dead"]["reasons"][0]["message"]
    for one in wrong.values():
        assert one["topic"][:20] in demo.printed


def test_the_dead_one_has_its_full_context(demo: Demo) -> None:
    with demo_database(demo.home) as database, database.reading() as session:
        letter = session.connection().execute(text("SELECT * FROM nightdesk.dead_letters")).one()
    assert letter.input["article"]["topic"] in {one["topic"] for one in demo.report["articles"]}
    assert letter.input["phase"]["outline"]
    assert letter.error_class == "permanent"
    assert "BadRequestError" in letter.stack
    assert len(letter.attempts) == 1
    assert letter.cost_usd > 0
    assert letter.run_url.endswith(f"/runs/flow-run/{letter.run}")
    assert letter.layer in ("automation", "event"), "not the sweep, which is slower"


def test_every_published_page_answers_200_with_its_marker_to_a_stranger(demo: Demo) -> None:
    published = [one for one in demo.report["articles"] if one["state"] == "published"]
    assert all(one["live"] for one in published)
    assert len({one["url"] for one in published}) == len(published)
    with demo_database(demo.home) as database, database.reading() as session:
        rows = session.connection().execute(text("SELECT url, article_id FROM nightdesk.publications"))
        markers = {row.url: row.article_id for row in rows}
    port = httpx.URL(published[0]["url"]).port
    assert port is not None
    with LoopbackServer(data_folder(demo.home) / "sites", port), httpx.Client(trust_env=False) as client:
        for one in published:
            page = client.get(one["url"], follow_redirects=False)
            assert page.status_code == 200
            assert f"<!-- nightdesk:{markers[one['url']]} -->" in page.text


def test_the_ledger_is_what_the_providers_journal_billed_priced_by_hand(demo: Demo) -> None:
    entries = read_journal(data_folder(demo.home) / "journal.jsonl")
    by_hand = Decimal(0)
    for entry in entries:
        usage = entry.usage
        if not usage or not Decimal(entry.billed_usd):
            continue
        into, out, read, write = (Decimal(price) / 1_000_000 for price in PRICES[entry.model or ""])
        by_hand += usage["input_tokens"] * into + usage["output_tokens"] * out
        by_hand += usage["cache_read_input_tokens"] * read + usage["cache_creation_input_tokens"] * write
    with demo_database(demo.home) as database, database.reading() as session:
        ledger = money_usd(session)
    assert ledger == by_hand
    assert Decimal(str(demo.report["totals"]["cost_usd"])) == by_hand
    assert sum(Decimal(str(one["cost_usd"])) for one in demo.report["articles"]) == by_hand


def test_every_word_count_language_and_prompt_is_in_the_report(demo: Demo) -> None:
    for one in demo.report["articles"]:
        if one["state"] == "published":
            assert one["words"] >= 250
            assert one["tokens"] > 1_000
            assert one["prompt_version"].startswith("draft/1@")
    languages = Counter(one["language"] for one in demo.report["articles"])
    assert languages.keys() == {"en", "sr-Latn", "sr-Cyrl", "te"}


def test_facts_of_briefs_stand_literally_in_stored_sources(demo: Demo) -> None:
    with demo_database(demo.home) as database, database.reading() as session:
        rows = session.connection().execute(text("SELECT article_id, facts FROM nightdesk.briefs")).all()
        texts: dict[object, str] = {}
        for row in session.connection().execute(text("SELECT article_id, text FROM nightdesk.sources")):
            texts[row.article_id] = texts.get(row.article_id, "") + row.text
    facts = [(row.article_id, fact) for row in rows for fact in row.facts]
    assert len(facts) >= 10
    for article_id, fact in facts:
        assert " ".join(fact["quote"].split()) in " ".join(texts[article_id].split())


def test_the_report_says_by_which_layer_the_dead_one_was_brought(demo: Demo) -> None:
    (dead,) = [one for one in demo.report["articles"] if one["state"] == "dead"]
    assert dead["dead_letter_layer"] in ("automation", "event")


def test_a_second_run_goes_on_with_the_same_database_and_publishes_nothing_twice(demo: Demo) -> None:
    journal = data_folder(demo.home) / "journal.jsonl"
    before = len(read_journal(journal))
    again, _ = run_demo(demo.home)
    assert len(read_journal(journal)) == before
    assert again["articles"] == demo.report["articles"]
