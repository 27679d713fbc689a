"""The command line, as a user meets it: clear words, right exit codes, nothing half done."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from nightdesk.sandbox import read_journal
from tests.acceptance.command_user import User, a_user, refused

pytestmark = pytest.mark.timeout(120)
RUN = ("run", "--topic", "Starting a compost heap", "--keyword", "compost heap", "--site", "garden")


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    with a_user(tmp_path_factory.mktemp("user")) as one:
        yield one


def test_run_writes_one_article_and_the_same_command_again_buys_nothing(user: User) -> None:
    first = user.json(*RUN)
    assert first["state"] == "published"
    assert first["url"].startswith("http://127.0.0.1:")
    assert first["words"] >= 300
    assert first["cost_usd"] > 0
    asked = user.requests
    again = user.json(*RUN)
    assert again["url"] == first["url"]
    assert user.requests == asked


def test_run_speaks_the_other_providers_protocol_with_nothing_but_key_and_address_changed(user: User) -> None:
    topic = (
        "run",
        "--topic",
        "Како гајити босиљак",
        "--keyword",
        "босиљак",
        "--site",
        "garden",
        "--language",
        "sr",
    )
    article = user.json(*topic, ANTHROPIC_API_KEY="", OPENAI_API_KEY="a key")
    assert (article["state"], article["language"]) == ("published", "sr-Cyrl")
    assert {entry.provider for entry in read_journal(user.sandbox.options.journal)[-4:]} == {"openai"}


def test_a_model_may_be_chosen_and_one_without_a_price_is_refused_before_the_first_call(user: User) -> None:
    asked = user.requests
    refused(user(*RUN[:2], "Another topic", *RUN[3:], "--model", "gpt-6.2-sol"), "gpt-6.2-sol", "no price")
    assert user.requests == asked
    cheap = user.json(*RUN[:2], "Cheap topic", *RUN[3:], "--model", "claude-haiku-5-5")
    assert cheap["state"] == "published"
    models = {entry.model for entry in read_journal(user.sandbox.options.journal)[asked:]}
    assert models == {"claude-haiku-5-5"}


def test_a_refused_key_costs_no_attempt_pauses_the_provider_and_says_so(user: User) -> None:
    done = user(*RUN[:2], "Refused topic", *RUN[3:], ANTHROPIC_API_KEY="wrong")
    assert done.returncode == 1
    assert "401" in done.stdout
    assert "it waits" in done.stdout
    again = user.json(*RUN[:2], "Refused topic", *RUN[3:])
    assert again["state"] == "published"


def test_without_a_key_it_says_which_variable_to_set(user: User) -> None:
    refused(user(*RUN, ANTHROPIC_API_KEY=""), "ANTHROPIC_API_KEY", "nightdesk demo")


def test_topics_are_added_listed_and_shown(user: User) -> None:
    added = user(
        "topics", "add", "--topic", "Pruning roses", "--keyword", "pruning roses", "--site", "garden"
    )
    assert added.returncode == 0, added.stderr
    listed = {one["topic"]: one for one in user.json("topics", "list")}
    assert listed["Pruning roses"]["state"] == "queued"
    refused(
        user("topics", "add", "--topic", "PRUNING  roses", "--keyword", "roses", "--site", "garden"),
        "there already as article",
    )


def test_a_file_with_one_bad_row_imports_nothing(user: User) -> None:
    file = user.home / "topics.csv"
    file.write_text("topic,keyword,site\nGood one,good,garden\nBad one,bad,cellar\n", encoding="utf-8")
    refused(user("topics", "import", str(file)), "line 3, column 'site'", "cellar", "garden")
    assert "Good one" not in {one["topic"] for one in user.json("topics", "list")}
    file.write_text("topic,keyword,site\nGood one,good,garden\n", encoding="utf-8")
    assert user("topics", "import", str(file)).returncode == 0
    refused(user("topics", "import", str(file)), "line 2, column 'topic'", "there already")
    assert (
        "0 topics added, 1 were there already"
        in user("topics", "import", str(file), "--skip-existing").stdout
    )


def test_show_prints_brief_outline_draft_revision_verdict_publication_and_cost_by_phase(user: User) -> None:
    user.json(*RUN)
    number = next(one["number"] for one in user.json("articles", "list") if one["state"] == "published")
    shown = user("articles", "show", str(number))
    for part in (
        "brief (",
        "outline (",
        "draft (",
        "revision 1",
        "quality gate: passed",
        "publication",
        "cost by phase",
    ):
        assert part in shown.stdout
    detail = user.json("articles", "show", str(number))
    assert {row["phase"] for row in detail["cost_by_phase"]} == {"research", "outline", "draft", "optimize"}
    missing = user("articles", "show", "999")
    assert (missing.returncode, "there is no article 999" in missing.stderr) == (1, True)


@pytest.mark.parametrize(
    ("name", "content", "options", "code", "rule"),
    [
        ("good.md", "# Compost\n\nCompost is easy to make.\n", ["--keyword", "compost"], 0, None),
        ("todo.md", "The price is [TODO: add price] here.\n", [], 1, "placeholder_todo"),
        ("waived.md", "The price is [TODO: price] here.\n", ["--waive", "placeholder_todo"], 0, None),
        ("page.html", "<p>As an AI language model, I cannot say.</p>", [], 1, "ai_disclosure"),
        (
            "sr.md",
            "Као вештачка интелигенција, немам лична искуства.",
            ["--language", "sr"],
            1,
            "ai_disclosure",
        ),
        ("short.md", "Too short.", ["--min-words", "50"], 1, "min_words"),
    ],
)
def test_check_says_whether_a_file_would_be_held(
    user: User, name: str, content: str, options: list[str], code: int, rule: str | None
) -> None:
    (user.home / name).write_text(content, encoding="utf-8")
    done = user("check", name, "--json", *options)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["ok"]) == (code, code == 0)
    if rule is not None:
        found = next(finding for finding in verdict["findings"] if finding["rule"] == rule)
        assert found["passage"] or rule == "min_words"
        assert found["message"]


def test_bad_settings_are_one_clear_line_each(user: User) -> None:
    refused(user("topics", "list", NIGHTDESK_DATABASE_URL="mysql://x/y"), "Postgres only")
    refused(user("topics", "list", NIGHTDESK_DATABASE_URL="postgresql://u@127.0.0.1:1/x"), "cannot connect")
    refused(user("topics", "list", NIGHTDESK_JOBS__MAX_USD="lots"), "jobs.max_usd")
    refused(user("topics", "list", NIGHTDESK_CONFIG="none.toml"), "none.toml")
    (user.home / "broken.toml").write_text("sites = [", encoding="utf-8")
    refused(user("topics", "list", NIGHTDESK_CONFIG="broken.toml"), "not valid TOML")
    (user.home / "typo.toml").write_text("[sites.garden]\ntitel = 'x'\n", encoding="utf-8")
    refused(user("topics", "list", NIGHTDESK_CONFIG="typo.toml"), "sites.garden")
    refused(user("check", "none.md"), "none.md")
    refused(user("check", ".", "--language", "xx"), "language 'xx'")


def test_a_budget_holds_from_the_next_job_on_and_a_raised_one_lets_work_flow_again(user: User) -> None:
    topic = (*RUN[:2], "Growing rhubarb", *RUN[3:])
    assert "no budget" in user("budget", "show").stdout
    assert "no job fits" in user("budget", "set", "fleet", "--cap", "0.50", "--why", "a test").stdout
    asked = user.requests
    stopped = user(*topic)
    assert stopped.returncode == 1
    assert "no room in budget fleet" in stopped.stdout
    assert user.requests == asked
    (shown,) = user.json("budget", "show")
    assert (shown["name"], shown["cap_usd"], shown["is_full"]) == ("fleet", 0.5, True)
    assert user("budget", "set", "fleet", "--cap", "50").returncode == 0
    assert user.json(*topic)["state"] == "published"
    assert "is in force already" in user("budget", "set", "fleet", "--cap", "50").stdout
    assert "fleet" in user("budget", "show").stdout
    assert user("budget", "drop", "fleet").returncode == 0
    assert user.json("budget", "show") == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("fleet", "--cap", "0"), "greater than 0"),
        (("fleet", "--cap", "a lot"), "not an amount"),
        (("fleet", "--cap", "5", "--scope", "site"), "scope_name"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused_and_changes_nothing(
    user: User, options: tuple[str, ...], words: str
) -> None:
    refused(user("budget", "set", *options), words)
    assert user.json("budget", "show") == []
