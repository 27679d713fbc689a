"""Files that are either old or new, whenever the process dies, and one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightdesk.errors import Blocked, Lane, Transient

_POLL_S = 0.02
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def write_atomically(path: Path, data: bytes) -> None:
    """Make `path` hold `data`, durably; a file that already does is not touched.

    The temporary file has a fixed name: one left by a killed process is overwritten by the next
    attempt, so none pile up. The caller holds the lock of the site.

    Raises:
        OSError: nothing was changed and no temporary file is left.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    if _holds(path, data):
        temporary.unlink(missing_ok=True)
        return
    make_folder(path.parent)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Create `folder` and what is missing above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


@contextmanager
def locked(path: Path, lane: Lane, wait_s: float) -> Iterator[None]:
    """Hold the lock file `path` against other threads and processes; it ends with the process.

    Raises:
        Transient: another publisher kept the lock for `wait_s` seconds.
        OSError: the lock file cannot be created.
    """
    # Each holder opens the file itself: flock belongs to the open file, so it parts threads too.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + wait_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise Transient(
                    f"{lane} is still being written by another publisher after {wait_s:g} s: try again later",
                    lane=lane,
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def blocking(lane: Lane, folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into `Blocked`: every other article would meet it too."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            problem, mend = "there is no room left", "free some space or raise the quota"
        elif error.errno in _FORBIDDEN:
            problem, mend = "writing is not allowed", "let Nightdesk's user write there"
        else:
            problem, mend = error.strerror or repr(error), "check the folder and its disk"
        where = error.filename or folder
        raise Blocked(
            f"{lane} cannot be written in {folder}: {problem} ({where}); {mend}", lane=lane
        ) from error


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
