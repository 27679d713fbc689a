"""Somebody who uses the command line, and what a refusal looks like."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightdesk.embedded import EmbeddedPostgres
from nightdesk.sandbox import SandboxOptions, SandboxProcess, read_journal
from tests.acceptance.demo_run import environment


@dataclass
class User:
    """Somebody with an empty home, a key, and the sandbox where the provider would be."""

    home: Path
    sandbox: SandboxProcess
    embedded: EmbeddedPostgres

    def __call__(
        self, *arguments: str | bytes, stdout: Any = subprocess.PIPE, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nightdesk", *arguments],
            cwd=self.home,
            env=self.environment | variables,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=90,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.home) | {
            "ANTHROPIC_API_KEY": "a key",
            "NIGHTDESK_ANTHROPIC__BASE_URL": self.sandbox.base_url,
            "NIGHTDESK_OPENAI__BASE_URL": self.sandbox.base_url + "/v1",
            "NIGHTDESK_SITE_PORT": "0",
        }

    def json(self, *arguments: str, **variables: str) -> Any:
        done = self(*arguments, "--json", **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @property
    def requests(self) -> int:
        return len(read_journal(self.sandbox.options.journal))


@contextmanager
def a_user(home: Path) -> Iterator[User]:
    """A user whose embedded Postgres is kept for all their commands, which adopt it."""
    embedded = EmbeddedPostgres(home / ".local" / "share" / "nightdesk")
    (home / ".local" / "share" / "nightdesk").mkdir(parents=True)
    embedded.start()
    with SandboxProcess(SandboxOptions(port=0, journal=home / "journal.jsonl")) as sandbox:
        yield User(home, sandbox, embedded)
    embedded.stop()
    subprocess.run(["rm", "-rf", str(embedded.home)], check=True)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """One clear message, exit code 2, no traceback."""
    assert done.returncode == 2, (done.stdout or "") + done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
