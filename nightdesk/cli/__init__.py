"""The `nightdesk` command: one module per group of commands, put together in `app`."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys

# A disk that is full or broken, under standard output.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main() -> None:
    """Run the command line; an operator's mistake is one clear line and exit code 2."""
    _leave_at_once_on_ctrl_c()
    _write_whatever_comes()
    from nightdesk.cli.app import app
    from nightdesk.cli.output import complain

    try:
        _listen_to_ctrl_c()
        try:
            app()
        finally:
            # Here, and not when Python ends: a full disk is told like any other mistake.
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except Exception as error:
        said = _explain(error)
        if said is None:
            raise
        _drop_output()
        complain(said)
        sys.exit(2)


def _explain(error: Exception) -> str | None:
    """What an operator can do something about, in words; None for a bug, which keeps its traceback."""
    from nightdesk.errors import OperatorError

    if isinstance(error, OperatorError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return f"the output cannot be written: {error.strerror}"
    from nightdesk.db import explain

    return explain(error)


def _leave_at_once_on_ctrl_c() -> None:
    """While modules are imported, which takes a second, there is nothing to put in order."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))


def _listen_to_ctrl_c() -> None:
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _write_whatever_comes() -> None:
    """A character that the terminal does not have is written as its escape; no stream is nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What Python would still write at its end goes nowhere: its reader or its disk is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
