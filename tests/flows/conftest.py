"""A real Prefect server on the test's Postgres, and a model provider that speaks the real protocol.

The address is fixed before Prefect is imported: it reads its settings then.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from sqlalchemy.engine import URL, make_url

from deployments.definitions import POOL
from deployments.server_settings import client_environment, server_environment
from nightdesk.db import Database
from nightdesk.sandbox import SandboxOptions, SandboxProcess
from nightdesk.supervisor.children import end_tree
from tests.integration.conftest import _execute, database, server, template

__all__ = ["database", "server", "template"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


PORT = _free_port()
API_URL = f"http://127.0.0.1:{PORT}/api"
HOME = Path(tempfile.mkdtemp(prefix="nightdesk-prefect-"))
os.environ.update(client_environment(HOME, API_URL, query_s=2))
# A test looks at what a run has logged through its states: the log itself would only be noise.
os.environ.update({"PREFECT_LOGGING_LEVEL": "WARNING", "PREFECT_LOGGING_TO_API_ENABLED": "false"})


PLAN: list[dict[str, Any]] = [
    {
        "name": "a prompt that is refused",
        "match": {"contains": "Unacceptable"},
        "times": None,
        "action": {
            "kind": "status",
            "status": 400,
            "error": {"type": "invalid_request_error", "message": "this prompt is refused"},
        },
    },
    {
        "name": "overloaded twice",
        "match": {"contains": "Overloaded"},
        "times": 2,
        "action": {"kind": "status", "status": 529},
    },
    {
        "name": "a slow answer",
        "match": {"contains": "Unhurried"},
        "times": None,
        "action": {"kind": "latency", "seconds": 10},
    },
]

#: What `up` and Prefect itself have.
WORKER_QUERY_S = 5.0


class PrefectServer:
    """A server process that a test may kill and start again."""

    def __init__(self, database_url: str, log: Path) -> None:
        self._database_url = database_url
        self._env = {
            name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")
        } | server_environment(HOME, PORT, database_url)
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "prefect", "server", "start", "--no-ui"],
                env=self._env | {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 90
        while not self.answers():
            assert self.process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < deadline, self._log.read_text()[-3000:]
            time.sleep(0.2)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{API_URL}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def age(self, run: str) -> None:
        """Let a run's state be an hour older than it is."""
        address = (
            make_url(self._database_url).set(drivername="postgresql").render_as_string(hide_password=False)
        )
        with psycopg.connect(address) as connection:
            connection.execute(
                "UPDATE flow_run_state SET timestamp = timestamp - interval '1 hour' WHERE flow_run_id = %s",
                [run],
            )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


@pytest.fixture(scope="session")
def prefect_server(server: URL) -> Iterator[PrefectServer]:
    """One server for all tests of this process."""
    name = f"nd_prefect_{os.getpid()}"
    _execute(server, f"CREATE DATABASE {name}")
    address = server.set(database=name, drivername="postgresql+asyncpg")
    running = PrefectServer(address.render_as_string(hide_password=False), HOME / "server.log")
    running.start()
    yield running
    running.stop()
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """A model provider that fails as the topic says (`PLAN`)."""
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "plan.json").write_text(json.dumps({"rules": PLAN}))
    sandbox = SandboxProcess(
        SandboxOptions(
            port=0, journal=folder / "journal.jsonl", latency_s=0.0, seed=1, plan=folder / "plan.json"
        )
    )
    sandbox.start()
    yield sandbox
    sandbox.stop()


@pytest.fixture
def desk_environment(
    prefect_server: PrefectServer,
    provider: SandboxProcess,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Database:
    """The environment of a worker: this test's database, the provider, one static site."""
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    for name, value in {
        "NIGHTDESK_DATABASE_URL": url,
        "NIGHTDESK_DATA_DIR": str(tmp_path / "data"),
        "NIGHTDESK_SITE_PORT": "0",
        "NIGHTDESK_PROVIDER": "anthropic",
        "NIGHTDESK_ANTHROPIC": json.dumps({"api_key": "sandbox", "base_url": provider.base_url}),
        "NIGHTDESK_SITES": json.dumps({"garden": {"title": "The Night Garden"}}),
    }.items():
        monkeypatch.setenv(name, value)
    return database


@pytest.fixture
async def desk(desk_environment: Database, prefect_server: PrefectServer) -> AsyncIterator[Database]:
    """Everything applied, without schedules, and a worker as `up` starts it."""
    from prefect.client.orchestration import get_client

    from deployments.apply import apply
    from nightdesk.config import load_settings

    await apply(load_settings(), tell=lambda _line: None)
    async with get_client() as client:
        for deployment in await client.read_deployments():
            for schedule in deployment.schedules:
                await client.update_deployment_schedule(deployment.id, schedule.id, active=False)
        for run in await client.read_flow_runs():
            if run.state is not None and run.state.is_scheduled():
                await client.delete_flow_run(run.id)
    with (HOME / "worker.log").open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--limit", "3"],
            env=os.environ
            | {
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "PREFECT_WORKER_QUERY_SECONDS": f"{WORKER_QUERY_S:g}",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    yield desk_environment
    end_tree(psutil.Process(worker.pid), 5.0)
    worker.wait()


@pytest.fixture(scope="package", autouse=True)
def prefect_is_shut_down() -> Iterator[None]:
    """What Prefect leaves in this process ends here, not in the next package's tests or at the exit."""
    yield
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Prefect 3.9 leaves the sockets of its synchronous clients to the garbage collector."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
