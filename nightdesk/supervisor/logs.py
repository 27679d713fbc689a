"""Logs of bounded size.

A child writes to its log by itself, appending: no pipe, so that it neither waits for us nor dies with us.
So the file is never renamed under it: a full one is copied and cut. It is read until nothing comes any
more right before the cut; what is written in the microseconds between is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MAX_BYTES = 10_000_000
KEPT = 3


def rotate(log: Path, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> bool:
    """Make room if a log is full; returns whether it was."""
    try:
        if log.stat().st_size < max_bytes:
            return False
    except FileNotFoundError:
        return False
    for number in range(kept - 1, 0, -1):
        older = log.with_suffix(f".log.{number}")
        if older.exists():
            older.replace(log.with_suffix(f".log.{number + 1}"))
    with log.open("rb+") as current, log.with_suffix(".log.1").open("wb") as copy:
        shutil.copyfileobj(current, copy, 1 << 20)
        copied = current.tell()
        # A write may come between the last read and the cut: read on until there is none.
        while rest := current.read():
            copy.write(rest)
            copied = current.tell()
        os.ftruncate(current.fileno(), 0)
    return copied > 0


def tail(log: Path, lines: int = 3, size: int = 4_000) -> str:
    """The last lines of a log, for a message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - size))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return " / ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])
