"""Cuts, resets and trickles are real on the socket."""

from __future__ import annotations

import json
import socket
import time

import pytest

from tests.integration.sandbox.conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = json.dumps(
    {
        "model": "claude-sonnet-5-5",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "topic: bread"}],
    }
).encode()
HEAD = (
    "POST /v1/messages HTTP/1.1\r\nHost: sandbox\r\nx-api-key: key\r\n"
    f"content-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n"
).encode()


def exchange(bench: Bench) -> tuple[list[tuple[float, bytes]], type[Exception] | None]:
    """What arrives, with the seconds since the request, and the error it ends with, if any."""
    pieces: list[tuple[float, bytes]] = []
    with socket.create_connection(("127.0.0.1", bench.process.port), timeout=5) as connection:
        connection.sendall(HEAD + BODY)
        started = time.monotonic()
        try:
            while piece := connection.recv(65_536):
                pieces.append((time.monotonic() - started, piece))
        except ConnectionResetError as error:
            return pieces, type(error)
    return pieces, None


def body_of(pieces: list[tuple[float, bytes]]) -> tuple[int, bytes]:
    """The announced length of the body, and the part that arrived."""
    head, _, body = b"".join(piece for _, piece in pieces).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lengths[0].partition(b":")[2]), body


async def test_a_cut_body_ends_halfway_with_a_plain_close(bench: Bench) -> None:
    bench.break_with({"kind": "cut_body"})
    pieces, error = exchange(bench)
    announced, body = body_of(pieces)
    assert error is None
    assert len(body) == announced // 2
    assert body.startswith(b'{"id": "msg_')


async def test_a_reset_sends_nothing_but_the_reset(bench: Bench) -> None:
    bench.break_with({"kind": "reset"})
    assert exchange(bench) == ([], ConnectionResetError)


async def test_a_stall_sends_nothing_until_it_closes(bench: Bench) -> None:
    bench.break_with({"kind": "stall", "seconds": 0.4})
    started = time.monotonic()
    assert exchange(bench) == ([], None)
    assert 0.4 <= time.monotonic() - started < 3


async def test_a_trickle_sends_byte_after_byte_and_never_all(bench: Bench) -> None:
    bench.break_with({"kind": "trickle", "seconds": 0.5})
    pieces, error = exchange(bench)
    announced, body = body_of(pieces)
    assert error is None
    assert len(body) == 5 < announced
    assert pieces[-1][0] - pieces[0][0] >= 0.3


async def test_a_client_that_leaves_does_not_hold_the_server(bench: Bench) -> None:
    bench.break_with({"kind": "stall", "seconds": 600})
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", bench.process.port)) as connection:
            connection.sendall(HEAD + BODY)
    bench.set_plan({"rules": []})
    pieces, _ = exchange_and_close(bench)
    announced, body = body_of(pieces)
    assert len(body) == announced


def exchange_and_close(bench: Bench) -> tuple[list[tuple[float, bytes]], None]:
    """One whole answer on a connection that the server is asked to close."""
    with socket.create_connection(("127.0.0.1", bench.process.port), timeout=5) as connection:
        connection.sendall(HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + BODY)
        pieces = []
        while piece := connection.recv(65_536):
            pieces.append((0.0, piece))
    return pieces, None
