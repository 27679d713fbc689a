"""A child's log is bounded, and nothing that it says is lost while the log is turned over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    assert numbers == sorted(set(numbers))
    # What falls between the last read and the cut may be lost: microseconds each time.
    assert len(numbers) >= 20_000 * 0.9


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
