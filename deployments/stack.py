"""All of Nightdesk on one machine: Postgres, Prefect server, worker and the local sites, supervised."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from deployments.definitions import POOL, Pace
from deployments.server_settings import client_environment, server_environment
from nightdesk.compose import open_sites
from nightdesk.config import Settings, as_environment, inherited_environment
from nightdesk.db import Database
from nightdesk.embedded import EmbeddedPostgres
from nightdesk.errors import ConfigError
from nightdesk.publishing.port import Site
from nightdesk.schema import migrate
from nightdesk.site_server import remember_port, remembered_port
from nightdesk.supervisor import ChildSpec, DataFolderLock, Supervisor, who_listens

SERVER_PORT = 4200
#: What a tick at work gets to give back its jobs before it is killed.
DRAIN_S = 15.0
APPLY_TIMEOUT_S = 180.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StackOptions:
    """How the stack runs.

    Args:
        port: of the Prefect server; the one it had before is used again.
        runs: flow runs at a time.
        pace: other times than those of `prefect.yaml`.
        query_s: how often the worker asks for runs that are due.
    """

    port: int = SERVER_PORT
    runs: int = 6
    pace: Pace | None = None
    query_s: float = 5.0


@dataclass
class Stack:
    """What is running: where to look, and how long to serve."""

    settings: Settings
    database: Database
    sites: Mapping[str, Site]
    url: str  #: of the Prefect UI
    supervisor: Supervisor

    def serve(self, for_s: float | None = None) -> None:
        """Keep everything alive for so many seconds; without a number until Ctrl-C."""
        self.supervisor.serve(for_s)


@contextmanager
def running_stack(settings: Settings, options: StackOptions, tell: Tell) -> Iterator[Stack]:
    """Everything up, registered and supervised while the block runs.

    Raises:
        ConfigError: if it runs already on this data folder, or a port is taken.
        DatabaseError: if the database cannot be started or used.
    """
    with ExitStack() as stack:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        stack.enter_context(DataFolderLock(settings.data_dir))
        supervisor = Supervisor(
            log_dir=settings.data_dir / "logs", state_dir=settings.data_dir / "runs", tell=tell
        )
        supervisor.end_leftovers()
        postgres = EmbeddedPostgres(settings.data_dir)
        postgres.start()
        stack.callback(postgres.stop)
        settings = _with_database(settings, postgres)
        database = Database(settings.database_url.get_secret_value())  # type: ignore[union-attr]
        stack.callback(database.dispose)
        database.check()
        migrate(database)
        sites = stack.enter_context(open_sites(settings))
        port = _server_port(settings.data_dir, options.port)
        commands = _Commands(settings, options, port, postgres)
        stack.callback(supervisor.stop)
        supervisor.watch(_PostgresService(postgres))
        supervisor.start(commands.server())
        commands.register(tell)
        supervisor.start(commands.worker())
        yield Stack(settings, database, sites, commands.url, supervisor)


def _with_database(settings: Settings, postgres: EmbeddedPostgres) -> Settings:
    """The same settings with the address spelled out: children must not start a Postgres of their own."""
    from pydantic import SecretStr

    if settings.database_url is not None:
        return settings
    url = postgres.url().set(drivername="postgresql").render_as_string(hide_password=False)
    return settings.model_copy(update={"database_url": SecretStr(url)})


def _server_port(data_dir: Path, preferred: int) -> int:
    port = remembered_port(data_dir, "prefect", preferred)
    if port == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    elif (other := who_listens(port)) is not None:
        raise ConfigError(
            f"port {port}, at which the Prefect server answers, is taken by {other}: end that program, "
            "or choose another port with --port"
        )
    remember_port(data_dir, "prefect", port, preferred)
    return port


class _Commands:
    """The children's command lines and environments."""

    def __init__(
        self, settings: Settings, options: StackOptions, port: int, postgres: EmbeddedPostgres
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._port = port
        self._options = options
        self._home = settings.data_dir / "prefect"
        self._home.mkdir(parents=True, exist_ok=True)
        prefect_database = postgres.url("prefect").set(drivername="postgresql+asyncpg")
        self._server = inherited_environment() | server_environment(
            self._home, port, prefect_database.render_as_string(hide_password=False)
        )
        self._client = (
            inherited_environment()
            | client_environment(self._home, f"{self.url}/api", options.query_s)
            | as_environment(settings)
        )

    def server(self) -> ChildSpec:
        command = [sys.executable, "-m", "prefect", "server", "start"]
        return ChildSpec(
            name="prefect-server",
            command=[*command, "--host", "127.0.0.1", "--port", str(self._port)],
            env=self._server,
            ready=self._answers,
            ready_timeout_s=120.0,
            stop_timeout_s=10.0,
        )

    def worker(self) -> ChildSpec:
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL]
        return ChildSpec(
            name="worker",
            command=[*command, "--limit", str(self._options.runs), "--name", socket.gethostname()],
            # Runs are started as `python -m prefect.engine`: this Python.
            env=self._client | {"PATH": f"{Path(sys.executable).parent}:{self._client.get('PATH', '')}"},
            before_restart=self._recover,
            before_stop=self._drain,
            stop_timeout_s=10.0,
        )

    def register(self, tell: Tell) -> None:
        """`deployments.apply` and `deployments.recover`, in a process of their own."""
        arguments = [] if self._options.pace is None else ["--pace", json.dumps(asdict(self._options.pace))]
        for line in self._run("deployments.apply", *arguments).splitlines():
            tell(line)
        self._recover()
        self._pause(False)

    def _recover(self) -> None:
        """End what the last worker left pending: such a run would keep its phase from ticking."""
        self._run("deployments.recover")

    def _run(self, module: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=self._client,
            capture_output=True,
            text=True,
            timeout=APPLY_TIMEOUT_S,
        )
        if done.returncode:
            raise ConfigError(f"{module} failed:\n{(done.stdout + done.stderr).strip()[-3000:]}")
        return done.stdout

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/health", timeout=2) as answer:  # noqa: S310  loopback
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _pause(self, paused: bool) -> None:
        """No new runs for the worker that is about to stop; a missed pause costs nothing but a late tick."""
        request = urllib.request.Request(  # noqa: S310  loopback
            f"{self.url}/api/work_pools/{POOL}",
            data=json.dumps({"is_paused": paused}).encode(),
            headers={"Content-Type": "application/json"},
            method="PATCH",
        )
        with suppress(OSError), urllib.request.urlopen(request, timeout=5):  # noqa: S310
            pass

    def _drain(self, worker: psutil.Process) -> None:
        """Ask the runs at work to give back their jobs and end; the worker reports them meanwhile."""
        self._pause(True)
        with suppress(psutil.Error):
            runs = [run for run in worker.children(recursive=True) if "prefect.engine" in run.cmdline()]
            for run in runs:
                with suppress(psutil.Error):
                    run.terminate()
            psutil.wait_procs(runs, timeout=DRAIN_S)


class _PostgresService:
    """The embedded Postgres, as the supervisor watches it."""

    name = "postgres"

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        self._postgres = postgres

    def is_alive(self) -> bool:
        return self._postgres.is_running()

    def restart(self) -> None:
        self._postgres.start()
