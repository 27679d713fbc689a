"""One supervisor per data folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO, Self

import psutil

from nightdesk.errors import ConfigError


class DataFolderLock:
    """Context manager that holds `up.lock`; the kernel gives it up however the process ends.

    Raises:
        ConfigError: if another process holds it, with its pid.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "up.lock"
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip()
            file.close()
            raise ConfigError(
                f"Nightdesk runs already on {self._path.parent} ({_since(holder)}): "
                "end that one, or give this one another data folder with NIGHTDESK_DATA_DIR"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _since(pid: str) -> str:
    try:
        minutes = psutil.Process(int(pid)).create_time()
    except (ValueError, psutil.Error):
        return "by another process"
    import datetime

    started = datetime.datetime.fromtimestamp(minutes, datetime.UTC)
    return f"pid {pid}, since {started:%Y-%m-%d %H:%M} UTC"
