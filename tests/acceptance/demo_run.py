"""Running the demo as a user does: another process, an empty home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightdesk.db import Database
from nightdesk.embedded import EmbeddedPostgres


def environment(home: Path) -> dict[str, str]:
    """The environment of a new user: an empty home, no settings, no keys."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NIGHTDESK_", "PREFECT_", "XDG_")) and not name.endswith("_API_KEY")
    }
    return kept | {"HOME": str(home), "COLUMNS": "160"}


def start_demo(home: Path, *options: str) -> subprocess.Popen[str]:
    """Start `nightdesk demo --exit` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "nightdesk", "demo", "--exit", *options],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run_demo(home: Path, *options: str) -> tuple[dict[str, Any], str]:
    """Run the demo to its end; its report and what it printed."""
    report = home / "report.json"
    home.mkdir(parents=True, exist_ok=True)
    demo = start_demo(home, "--json", str(report), *options)
    try:
        printed, _ = demo.communicate(timeout=150)
    except BaseException:
        os.killpg(demo.pid, signal.SIGKILL)
        raise
    assert demo.returncode == 0, printed
    return json.loads(report.read_text(encoding="utf-8")), printed


def data_folder(home: Path) -> Path:
    """Where the demo keeps its data."""
    return home / ".local" / "share" / "nightdesk" / "demo"


@contextmanager
def demo_database(home: Path) -> Iterator[Database]:
    """The demo's database after it ended."""
    embedded = EmbeddedPostgres(data_folder(home))
    embedded.start()
    database = Database(embedded.url())
    try:
        yield database
    finally:
        database.dispose()
        embedded.stop()


def remove_cluster(home: Path) -> None:
    """Root's clusters lie outside the home."""
    embedded = EmbeddedPostgres(data_folder(home))
    if os.geteuid() == 0:
        subprocess.run(["rm", "-rf", str(embedded.home)], check=True)
