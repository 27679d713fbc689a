"""How long the sandbox keeps a connection that nobody uses."""

from __future__ import annotations

import socket
import time

import httpx2

from nightdesk.sandbox import SandboxProcess

REQUEST = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_it_keeps_one_for_longer_than_clients_do(process: SandboxProcess) -> None:
    """Else a request goes out now and then on a connection that is being closed: billed or not, who knows."""
    theirs_s = httpx2.Limits().keepalive_expiry
    assert theirs_s is not None
    address = httpx2.URL(process.base_url)
    with socket.create_connection((address.host, address.port or 80), timeout=5) as connection:
        connection.sendall(REQUEST)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404")
        time.sleep(theirs_s + 1.0)
        connection.sendall(REQUEST)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404")
