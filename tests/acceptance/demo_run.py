"""Running the demo as a user does: another process, an empty home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

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


def start_demo(home: Path, *options: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `nightdesk demo --exit` in a process group of its own; `more` is added to its environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "nightdesk", "demo", "--exit", *options],
        cwd=home,
        env=environment(home) | dict(more or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run_demo(
    home: Path, *options: str, more: Mapping[str, str] | None = None, timeout_s: float = 840
) -> tuple[dict[str, Any], str]:
    """Run the demo to its end; its report and what it printed."""
    report = home / "report.json"
    home.mkdir(parents=True, exist_ok=True)
    demo = start_demo(home, "--json", str(report), *options, more=more)
    try:
        printed, _ = demo.communicate(timeout=timeout_s)
    except BaseException:
        kill_all(demo.pid)
        raise
    assert demo.returncode == 0, printed
    return json.loads(report.read_text(encoding="utf-8")), printed


def kill_all(pid: int) -> None:
    """SIGKILL to a process and to all that it has started, the youngest last."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for one in family:
        with suppress(psutil.Error):
            one.kill()
    psutil.wait_procs(family, timeout=10)


def data_folder(home: Path) -> Path:
    """Where the demo keeps its data."""
    return home / ".local" / "share" / "nightdesk" / "demo"


@contextmanager
def demo_database(home: Path, name: str = "nightdesk") -> Iterator[Database]:
    """One of the demo's databases after it ended."""
    embedded = EmbeddedPostgres(data_folder(home))
    embedded.start()
    database = Database(embedded.url(name))
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
