"""The question of an idle tick."""

from __future__ import annotations

import subprocess
import sys

import pytest
from psycopg.conninfo import conninfo_to_dict

from nightdesk.desk.idle import libpq_url


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgresql://u:p%40ss@db.example:6543/name?pgbouncer=true&sslmode=require",
         {"user": "u", "password": "p@ss", "host": "db.example", "port": "6543", "dbname": "name", "sslmode": "require"}),
        ("postgresql+psycopg://postgres@/nightdesk?host=%2Fvar%2Flib%2Frun",
         {"user": "postgres", "dbname": "nightdesk", "host": "/var/lib/run"}),
        ("postgres://u@h/n", {"user": "u", "host": "h", "dbname": "n"}),
    ],
)  # fmt: skip
def test_any_address_of_the_settings_is_one_of_libpq(given: str, expected: dict[str, str]) -> None:
    assert conninfo_to_dict(libpq_url(given)) == expected


def test_what_an_idle_tick_imports_is_neither_sdk_nor_sqlalchemy() -> None:
    code = (
        "import sys, flows.research, flows.publish\n"
        "print([m for m in ('anthropic', 'openai', 'sqlalchemy', 'sqlmodel', 'trafilatura') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
