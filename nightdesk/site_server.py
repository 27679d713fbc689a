"""Serving the static sites on loopback, at the same address every time."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from nightdesk.config import Settings
from nightdesk.errors import ConfigError
from nightdesk.publishing.serve import LoopbackServer

#: A process that was killed a moment ago may still hold the port.
WAIT_FOR_PORT_S = 5.0
WATCH_S = 0.3
_NAME = "nightdesk-site-server.txt"


@contextmanager
def serve_static_sites(root: Path, settings: Settings) -> Iterator[str]:
    """The address at which `root` is served while the block runs.

    The port is remembered in the data folder: pages name their own address. If another process
    already serves this very folder there, that one is used.

    Raises:
        ConfigError: if the remembered port is taken by something else.
    """
    root.mkdir(parents=True, exist_ok=True)
    port = remembered_port(settings.data_dir, "sites", settings.site_port)
    token = _token(root)
    if port and _serves(port, token):
        with _standing_by(root, port, token):
            yield f"http://127.0.0.1:{port}"
        return
    with _started(root, port) as server:
        remember_port(settings.data_dir, "sites", server.port, settings.site_port)
        yield server.base_url


@contextmanager
def _standing_by(root: Path, port: int, token: str) -> Iterator[None]:
    """Use another process's server, and take its place when that process ends."""
    over = threading.Event()

    def watch() -> None:
        with ExitStack() as own:
            while not over.wait(WATCH_S):
                if not _serves(port, token):
                    with suppress(ConfigError):
                        own.enter_context(LoopbackServer(root, port))
                        over.wait()

    watcher = threading.Thread(target=watch, name="site-server-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def _started(root: Path, port: int) -> Iterator[LoopbackServer]:
    deadline = time.monotonic() + WAIT_FOR_PORT_S
    while True:
        server = LoopbackServer(root, port)
        try:
            server.__enter__()
            break
        except ConfigError:
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"port {port}, at which the pages of {root} are served, is taken by another "
                    "program: end that program, or choose another with NIGHTDESK_SITE_PORT"
                ) from None
            time.sleep(0.1)
    try:
        yield server
    finally:
        server.__exit__(None, None, None)


def _token(root: Path) -> str:
    path = root / _NAME
    if not path.exists():
        path.write_text(str(uuid.uuid4()), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def _serves(port: int, token: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", f"/{_NAME}")
        return connection.getresponse().read(100).decode("ascii", "replace") == token
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def remembered_port(data_dir: Path, name: str, preferred: int) -> int:
    """The port that a server had before; at first `preferred` if it is free, else 0 (any).

    A preference that was changed since is followed.
    """
    known = _ports(data_dir).get(name)
    if known is not None and known["preferred"] == preferred:
        return int(known["port"])
    return preferred if preferred and _is_free(preferred) else 0


def remember_port(data_dir: Path, name: str, port: int, preferred: int) -> None:
    """Note the port of a server for the next time."""
    ports = _ports(data_dir) | {name: {"port": port, "preferred": preferred}}
    path = data_dir / "ports.json"
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(ports), encoding="utf-8")
    unfinished.replace(path)


def _ports(data_dir: Path) -> dict[str, dict[str, int]]:
    """What is remembered, as far as it makes sense: a person may have had a hand in it."""
    try:
        ports = json.loads((data_dir / "ports.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    known = ports.items() if isinstance(ports, dict) else ()
    return {name: entry for name, entry in known if isinstance(entry, dict) and _is_entry(entry)}


def _is_entry(entry: dict[str, object]) -> bool:
    numbers = [entry.get("port"), entry.get("preferred")]
    return all(type(number) is int and 0 <= number <= 65_535 for number in numbers)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
