"""The embedded Postgres gives the right answer to what happens to data folders and process ids."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from nightdesk.embedded import EmbeddedPostgres
from nightdesk.errors import DatabaseError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    postgres = EmbeddedPostgres(tmp_path)
    if (process := postgres._postmaster()) is not None:
        process.send_signal(signal.SIGQUIT)
        process.wait(10)
    if os.geteuid() == 0:
        subprocess.run(["rm", "-rf", str(postgres.home)], check=True)


def pid(postgres: EmbeddedPostgres) -> int:
    return int((postgres.pgdata / "postmaster.pid").read_text().splitlines()[0])


def query(postgres: EmbeddedPostgres, statement: str) -> object:
    with psycopg.connect(postgres._conninfo("postgres"), autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[arg-type]
        return cursor.fetchone() if cursor.description else None


def test_a_second_start_adopts_the_running_server_and_the_last_one_that_leaves_stops_it(folder: Path) -> None:
    first, second = EmbeddedPostgres(folder), EmbeddedPostgres(folder)
    first.start()
    second.start()
    assert pid(first) == pid(second)
    first.stop()
    assert query(second, "SELECT 1") == (1,)
    second.stop()
    assert not (second.pgdata / "postmaster.pid").exists()


def test_it_listens_on_no_network_address(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    process = psutil.Process(pid(postgres))
    assert [item for item in process.net_connections(kind="inet") if item.status == "LISTEN"] == []
    postgres.stop()


def test_a_crash_is_recovered_and_what_was_committed_is_there(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    query(postgres, "CREATE TABLE kept AS SELECT 42 AS answer")
    for process in [psutil.Process(pid(postgres)), *psutil.Process(pid(postgres)).children()]:
        with suppress(psutil.NoSuchProcess):  # the children of a killed postmaster end by themselves
            process.kill()
    again = EmbeddedPostgres(folder)
    again.start()
    assert query(again, "SELECT answer FROM kept") == (42,)
    postgres.stop()
    again.stop()


def test_a_recycled_pid_is_not_taken_for_the_server_and_its_process_is_left_alone(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    postgres.stop()
    owner = {} if postgres.user is None else {"user": postgres.user.pw_uid}
    stranger = subprocess.Popen(["/bin/sleep", "60"], cwd="/", **owner)  # type: ignore[call-overload]
    try:
        stale = postgres.pgdata / "postmaster.pid"
        stale.write_text(
            f"{stranger.pid}\n{postgres.pgdata}\n{int(time.time())}\n5432\n{postgres.socket_dir}\n\n  1 1\nready\n"
        )
        again = EmbeddedPostgres(folder)
        again.start()
        assert pid(again) != stranger.pid
        assert query(again, "SELECT 1") == (1,)
        again.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", "not a pid\n", "999999999\n/nowhere\n"])
def test_a_stale_or_broken_pid_file_does_not_stop_the_start(folder: Path, content: str) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    postgres.stop()
    (postgres.pgdata / "postmaster.pid").write_text(content)
    again = EmbeddedPostgres(folder)
    again.start()
    assert query(again, "SELECT 1") == (1,)
    again.stop()


def test_data_of_another_version_is_refused_and_left_as_it_is(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    postgres.stop()
    (postgres.pgdata / "PG_VERSION").write_text("16\n")
    with pytest.raises(DatabaseError, match=r"written by Postgres 16, but version 18.*pg_dump"):
        EmbeddedPostgres(folder).start()
    assert (postgres.pgdata / "PG_VERSION").read_text() == "16\n"


def test_a_folder_that_is_not_a_cluster_is_refused_and_left_as_it_is(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.pgdata.mkdir(parents=True)
    (postgres.pgdata / "thesis.txt").write_text("mine")
    with pytest.raises(DatabaseError, match="not a Postgres data folder"):
        EmbeddedPostgres(folder).start()
    assert (postgres.pgdata / "thesis.txt").read_text() == "mine"


def test_a_start_that_was_killed_while_it_made_the_cluster_is_made_again(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    half = postgres.home / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    postgres.start()
    assert query(postgres, "SELECT 1") == (1,)
    assert not half.exists()
    postgres.stop()


def test_the_mode_of_no_folder_that_is_not_ours_is_changed(folder: Path) -> None:
    parents = [folder, *folder.parents]
    before = [path.stat().st_mode for path in parents]
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    postgres.stop()
    assert [path.stat().st_mode for path in parents] == before


def test_a_data_folder_with_a_long_path_works(folder: Path) -> None:
    deep = folder / ("a long name with spaces and 'quotes' " * 4).strip()
    deep.mkdir()
    postgres = EmbeddedPostgres(deep)
    postgres.start()
    assert query(postgres, "SELECT 1") == (1,)
    postgres.stop()
    if os.geteuid() == 0:
        subprocess.run(["rm", "-rf", str(postgres.home)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount the small disk that this fills")
def test_a_full_disk_is_named(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres._prepare_home()
    small = postgres.home / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        postgres.pgdata = small / "data"
        postgres.home = small
        assert postgres.user is not None
        os.chown(small, postgres.user.pw_uid, postgres.user.pw_gid)
        with pytest.raises(DatabaseError, match="no space left on the disk"):
            postgres._initialise()
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_server_whose_process_was_killed_alone_is_started_again(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    os.kill(pid(postgres), signal.SIGKILL)
    again = EmbeddedPostgres(folder)
    again.start()
    assert query(again, "SELECT 1") == (1,)
    postgres.stop()
    again.stop()
