"""How long the sandbox keeps a connection that nobody uses."""

from __future__ import annotations

import time
from http.client import HTTPConnection

import httpx2

from nightdesk.sandbox import SandboxProcess


def test_it_keeps_one_for_longer_than_clients_do(process: SandboxProcess) -> None:
    """Else a request goes out now and then on a connection that is being closed: billed or not, who knows."""
    theirs_s = httpx2.Limits().keepalive_expiry
    assert theirs_s is not None
    address = httpx2.URL(process.base_url)
    connection = HTTPConnection(address.host, address.port, timeout=5)
    try:
        status_of(connection)
        used = connection.sock
        time.sleep(theirs_s + 1.0)
        assert status_of(connection) == 404
        assert connection.sock is used
    finally:
        connection.close()


def status_of(connection: HTTPConnection) -> int:
    connection.request("GET", "/nothing")
    answer = connection.getresponse()
    answer.read()
    return answer.status
