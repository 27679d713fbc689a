"""What a careless user does: each mistake is told in plain words, and none breaks or costs anything."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from nightdesk.db import Database
from tests.acceptance.command_user import User, a_user, refused

pytestmark = pytest.mark.timeout(120)
RUN = ("run", "--keyword", "compost heap", "--site", "garden", "--topic")
ADD = ("topics", "add", "--keyword", "compost", "--site", "garden", "--topic")


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    with a_user(tmp_path_factory.mktemp("careless")) as one:
        yield one


def execute(user: User, *statements: str, database: str = "postgres") -> None:
    """Do something in the user's server, as its owner."""
    opened = Database(user.embedded.url(database))
    with opened.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.execute(text(statement))
    opened.dispose()


def address(user: User, database: str, role: str = "postgres") -> str:
    return f"postgresql://{role}@/{database}?host={user.embedded.socket_dir}"


# ── keys and addresses ───────────────────────────────────────────────────────────────────────────


def test_a_key_with_a_line_break_is_refused_before_anything_is_asked_or_booked(user: User) -> None:
    asked = user.requests
    refused(user(*RUN, "Broken key", ANTHROPIC_API_KEY="sk-secret\nx"), "ANTHROPIC_API_KEY", "line break")
    assert "sk-secret" not in user("topics", "list").stdout
    assert "Broken key" not in user("topics", "list").stdout
    assert user.requests == asked


def test_an_address_without_v1_kills_no_article_and_says_what_to_check(user: User) -> None:
    keys = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "a key"}
    wrong = user(*RUN, "Wrong address", NIGHTDESK_OPENAI__BASE_URL=user.sandbox.base_url, **keys)
    assert wrong.returncode == 1
    assert "openai.base_url (it usually ends in /v1)" in wrong.stdout
    assert "it waits" in wrong.stdout
    assert user.json(*RUN, "Wrong address", **keys)["state"] == "published"


def test_an_empty_model_or_provider_is_refused(user: User) -> None:
    refused(user(*RUN, "Empty", "--model", " "), "--model", "empty")
    refused(user(*RUN, "Empty", "--provider", ""), "'provider'", "'anthropic' or 'openai'")


def test_a_misspelt_variable_is_told_and_stops_nothing(user: User) -> None:
    done = user("sites", "list", NIGHTDESK_DATABSE_URL="postgresql://x/y", NIGHTDESK_TEST_X="1")
    assert done.returncode == 0
    assert done.stderr == (
        "NIGHTDESK_DATABSE_URL is no setting and has no effect: did you mean NIGHTDESK_DATABASE_URL?\n"
    )


# ── databases ────────────────────────────────────────────────────────────────────────────────────


def test_a_role_that_may_not_make_tables_is_told_what_to_grant(user: User) -> None:
    execute(user, "CREATE DATABASE strict", "CREATE ROLE guest LOGIN")
    done = user("topics", "list", NIGHTDESK_DATABASE_URL=address(user, "strict", "guest"))
    refused(done, 'GRANT CREATE ON DATABASE "strict" TO "guest"')


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE nightdesk.customers (id int)",
        "CREATE TABLE nightdesk.alembic_version AS SELECT 'f00ba4'::text AS version_num",
    ],
)
def test_a_schema_of_the_same_name_that_is_not_ours_is_left_alone(user: User, made: str) -> None:
    execute(user, "DROP DATABASE IF EXISTS foreigners", "CREATE DATABASE foreigners")
    execute(user, "CREATE SCHEMA nightdesk", made, database="foreigners")
    done = user("topics", "list", NIGHTDESK_DATABASE_URL=address(user, "foreigners"))
    refused(done, "'foreigners'", "not Nightdesk's", "another database")


def test_a_read_only_database_can_be_read_and_says_why_it_cannot_be_written(user: User) -> None:
    execute(user, "CREATE DATABASE standby", "ALTER DATABASE standby SET default_transaction_read_only = on")
    url = address(user, "standby")
    refused(user("topics", "list", NIGHTDESK_DATABASE_URL=url), "read-only", "the primary")
    execute(user, "ALTER DATABASE standby RESET ALL")
    assert user("topics", "list", NIGHTDESK_DATABASE_URL=url).returncode == 0
    execute(user, "ALTER DATABASE standby SET default_transaction_read_only = on")
    assert user("topics", "list", NIGHTDESK_DATABASE_URL=url).returncode == 0
    refused(user(*ADD, "Compost", NIGHTDESK_DATABASE_URL=url), "read-only", "the primary")


def test_any_other_error_of_the_database_is_one_line(user: User) -> None:
    url = address(user, "damaged")
    execute(user, "CREATE DATABASE damaged")
    assert user("topics", "list", NIGHTDESK_DATABASE_URL=url).returncode == 0
    execute(user, "DROP TABLE nightdesk.publications CASCADE", database="damaged")
    done = user("topics", "list", NIGHTDESK_DATABASE_URL=url)
    refused(done, "not as Nightdesk made it", "publications")
    assert done.stderr.count("\n") == 1


def test_an_address_that_cannot_be_reached_is_shown_as_it_was_given(user: User) -> None:
    done = user("topics", "list", NIGHTDESK_DATABASE_URL="postgresql://u:secret@127.0.0.1:1/x")
    refused(done, "cannot connect to postgresql://u:***@127.0.0.1:1/x")


# ── terminals and files ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "terminal",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_terminal_without_unicode_shows_escapes_and_json_stays_json(
    user: User, terminal: dict[str, str]
) -> None:
    user(*ADD, "Башта на тераси", "--language", "sr")
    shown = user("topics", "list", **terminal)
    assert shown.returncode == 0, shown.stderr
    assert r"\u0411\u0430\u0448" in shown.stdout
    assert shown.stdout.isascii()
    listed = user.json("topics", "list", **terminal)
    assert "Башта на тераси" in {one["topic"] for one in listed}


def test_an_argument_that_is_no_text_is_named_for_what_it_is(user: User) -> None:
    done = user(*ADD, b"caf\xe9", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    refused(done, "--topic", "not text in this terminal's encoding")


@pytest.mark.parametrize("command", [("sites", "list"), ("topics", "list", "--json")])
def test_a_full_disk_is_one_line(user: User, command: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = user(*command, stdout=full)
    refused(done, "cannot be written", "No space left")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_is_no_error(user: User) -> None:
    command = [sys.executable, "-m", "nightdesk", "topics", "list", "--json"]
    with subprocess.Popen(
        command, cwd=user.home, env=user.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as gone:
        assert gone.stdout is not None
        assert gone.stderr is not None
        gone.stdout.close()
        assert gone.stderr.read() == b""


def test_settings_that_cannot_be_read_are_one_line(user: User) -> None:
    refused(user("sites", "list", NIGHTDESK_JOBS="{bad"), "NIGHTDESK_JOBS is not valid JSON")
    file = user.home / "nightdesk.toml"
    file.mkdir()
    refused(user("sites", "list"), "nightdesk.toml is a folder")
    file.rmdir()


@pytest.mark.parametrize("moment", ["typer", "nightdesk.connection"])
def test_ctrl_c_while_it_starts_ends_it_without_a_word(user: User, moment: str) -> None:
    script = f"""
import builtins, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where it is ignored
load = builtins.__import__
def interrupted(name, *rest):
    if name == {moment!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return load(name, *rest)
from nightdesk.cli import main
builtins.__import__ = interrupted
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "topics", "list"],
        cwd=user.home,
        env=user.environment,
        capture_output=True,
        check=False,
    )
    # A shell sees 130 in both cases.
    assert done.returncode in (130, -signal.SIGINT)
    assert (done.stdout, done.stderr) == (b"", b"")


# ── topics, articles, runs ───────────────────────────────────────────────────────────────────────


def test_options_are_named_as_they_are_typed(user: User) -> None:
    done = user(*ADD, "Bad source", "--source", "ftp://x")
    refused(done, "--source: 'ftp://x'")
    assert "--sources" not in done.stderr
    user(*ADD, "Added twice")
    twice = user(*ADD, "ADDED twice")
    refused(twice, "there already as article")
    assert "column" not in twice.stderr


def test_what_is_not_imported_takes_no_number(user: User) -> None:
    user(*ADD, "First of two")
    file = user.home / "two.csv"
    file.write_text("topic,keyword,site\nNew one,one,garden\nFirst of two,two,garden\n", encoding="utf-8")
    refused(user("topics", "import", str(file)), "line 3, column 'topic': there already as article")
    user(*ADD, "Second of two")
    numbers = {one["topic"]: one["number"] for one in user.json("topics", "list")}
    assert numbers["Second of two"] == numbers["First of two"] + 1
    assert "1 topic added, 1 were there" in user("topics", "import", str(file), "--skip-existing").stdout


def test_lists_can_be_cut_and_a_mistaken_site_is_named(user: User) -> None:
    user(*ADD, "Listed one", "--priority", "1")
    user(*ADD, "Listed nine", "--priority", "9")
    assert [one["topic"] for one in user.json("topics", "list", "--limit", "1")] == ["Listed nine"]
    found = user.json("articles", "list", "--state", "queued", "--limit", "1")
    assert [one["topic"] for one in found] == ["Listed nine"]
    refused(user("articles", "list", "--site", "gardn"), "'gardn'", "the sites are garden")


def test_a_run_of_what_another_run_works_on_says_so(user: User) -> None:
    user(*ADD, "Held by another")
    execute(
        user,
        "UPDATE nightdesk.jobs SET state = 'leased', locked_by = 'another', claim_no = 1, attempts = 1, "
        "locked_until = now() + interval '1 hour' WHERE article_id = "
        "(SELECT id FROM nightdesk.articles WHERE topic = 'Held by another')",
        database="nightdesk",
    )
    done = user("run", "--keyword", "compost", "--site", "garden", "--topic", "Held by another")
    assert done.returncode == 1
    assert "another run works on it" in done.stdout
    assert "it waits" not in done.stdout


def test_a_run_mentions_the_sources_that_it_could_not_read(user: User) -> None:
    source = ("--source", "http://127.0.0.1:1/page")
    done = user(*RUN, "Without its source", *source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not read: http://127.0.0.1:1/page: " in done.stdout
    again = user.json(*RUN, "Without its source", *source)
    assert list(again["unread_sources"]) == ["http://127.0.0.1:1/page"]


# ── check ────────────────────────────────────────────────────────────────────────────────────────


def test_check_refuses_options_that_ask_for_nothing(user: User) -> None:
    (user.home / "a.md").write_text("Compost is easy.\n", encoding="utf-8")
    refused(
        user("check", "a.md", "--waive", "placeholder_tod"),
        "placeholder_tod",
        "placeholder_todo",
        "min_words",
    )
    refused(user("check", "a.md", "--keyword", ""), "--keyword", "empty")
    refused(user("check", "a.md", "--h2", " "), "--h2", "empty")


def test_check_holds_what_is_empty_or_would_run_and_refuses_what_is_too_large(user: User) -> None:
    file = user.home / "page.html"
    for content, rule in (
        (b" \n\x00\n", "empty_text"),
        (b"<p onclick='x()'>Compost.</p>", "active_content"),
        (b"<div>" * 2_000 + b"Compost.", "too_deep"),
    ):
        file.write_bytes(content)
        done = user("check", "page.html")
        assert (done.returncode, rule in done.stdout) == (1, True), done.stdout + done.stderr
    file.write_bytes(b"a " * 1_500_000)
    refused(user("check", "page.html"), "page.html", "larger than 2 MB")
    refused(user("check", "/dev/zero"), "larger than 2 MB")
