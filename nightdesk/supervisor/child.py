"""Runs one command so that it dies with the process that started it: `python -m nightdesk.supervisor.child`.

On Linux the kernel sends SIGTERM when the starting thread ends. The command replaces this process, so
that its pid is the one that the supervisor knows. Signals that a background shell had ignored are heard
again: Prefect's worker ends by an interrupt.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """`child PARENT_PID COMMAND…`"""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)  # it died before the kernel could be asked
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
