"""Listening on loopback: the port, the ready line, and the end."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import threading
from typing import NoReturn

import uvicorn

from nightdesk.errors import OperatorError
from nightdesk.sandbox.app import create_app
from nightdesk.sandbox.exchanging import Desk
from nightdesk.sandbox.faults import FaultInjector, load_plan
from nightdesk.sandbox.journal import JournalWriter
from nightdesk.sandbox.options import SandboxOptions
from nightdesk.sandbox.sources.site import load_site
from nightdesk.sandbox.wire import WireProtocol

_HOST = "127.0.0.1"
_USAGE_ERROR = 2


#: As long as providers' own. uvicorn's five seconds are as long as httpx keeps a connection: now and then a
#: request would go out on one that is being closed, and nobody could say whether it is billed.
KEEP_ALIVE_S = 75


class _Server(uvicorn.Server):
    """Says on stdout that it listens, once it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            ready = {"port": sockets[0].getsockname()[1], "pid": os.getpid()}
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()


def run(options: SandboxOptions) -> None:
    """See `nightdesk.sandbox.serve`."""
    try:
        injector = FaultInjector(load_plan(options.plan), options.seed)
    except OperatorError as error:
        _give_up(str(error))
    # The port comes first: whoever has it may be writing to the same journal.
    listener = _listen(options.port)
    try:
        journal = JournalWriter(options.journal)
    except OperatorError as error:
        listener.close()
        _give_up(str(error))
    except OSError as error:
        listener.close()
        _give_up(f"journal {options.journal}: cannot be written ({error.strerror})")
    desk = Desk(journal, injector, options.seed, options.latency_s)
    config = uvicorn.Config(
        create_app(desk, load_site()),
        http=WireProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    if options.exit_with_parent:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    _Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is taken: stop the other process" if taken else f"cannot be used ({error})"
        _give_up(f"port {port} on {_HOST} {why} or choose another port (0 takes a free one)")
    return listener


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    # Nothing is lost by not being polite: every journal entry is on disk before its answer leaves.
    os._exit(0)


def _give_up(message: str) -> NoReturn:
    sys.stderr.write(f"nightdesk sandbox: {message}\n")
    raise SystemExit(_USAGE_ERROR)
