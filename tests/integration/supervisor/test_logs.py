"""A child's log is bounded, and nothing that it says is lost while the log is turned over."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from nightdesk.supervisor.logs import rotate, tail

WRITER = (
    "import sys\n"
    "with open(sys.argv[1], 'ab', buffering=0) as log:\n"
    "    for number in range(20_000): log.write(b'%08d\\n' % number)"
)


def test_lines_stay_whole_and_in_order_while_the_log_is_turned_over(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.touch()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(log)])
    turned = 0
    while writer.poll() is None:
        turned += rotate(log, max_bytes=5_000, kept=1_000)
    assert writer.returncode == 0
    assert turned > 1
    numbers = read_by_age(log)
    # What falls between the last read and the cut is lost: how much that is depends on who is given the processor.
    assert numbers == sorted(set(numbers))
    assert numbers


def test_what_a_child_says_while_its_log_is_copied_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "child.log"
    log.write_bytes(b"".join(b"%08d\n" % number for number in range(100)))
    copy = shutil.copyfileobj

    def copy_slowly(source: BinaryIO, target: BinaryIO, length: int) -> None:
        copy(source, target, length)
        with log.open("ab") as child:
            child.writelines(b"%08d\n" % number for number in range(100, 200))

    monkeypatch.setattr(shutil, "copyfileobj", copy_slowly)
    assert rotate(log, max_bytes=500)
    with log.open("ab") as child:
        child.write(b"%08d\n" % 200)
    assert read_by_age(log) == list(range(201))


def read_by_age(log: Path) -> list[int]:
    older = sorted(log.parent.glob("child.log.*"), key=lambda part: -int(part.suffix[1:]))
    return [int(line) for part in (*older, log) for line in part.read_bytes().split()]


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    for number in range(6):
        log.write_bytes(b"%d\n" % number * 10)
        assert rotate(log, max_bytes=5, kept=3)
    assert sorted(part.name for part in tmp_path.iterdir()) == [
        "child.log", "child.log.1", "child.log.2", "child.log.3",
    ]  # fmt: skip
    assert log.read_bytes() == b""
    assert (tmp_path / "child.log.1").read_bytes().startswith(b"5\n")
    assert (tmp_path / "child.log.3").read_bytes().startswith(b"3\n")


def test_a_log_that_is_not_full_or_not_there_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    assert not rotate(log)
    log.write_bytes(b"a line\n")
    assert not rotate(log)
    assert log.read_bytes() == b"a line\n"


def test_the_last_lines_are_shown_whatever_bytes_they_are(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    assert tail(log) == ""
    log.write_bytes(b"first\n\n\xff second\n  third \n")
    assert tail(log, 2) == "� second / third"
