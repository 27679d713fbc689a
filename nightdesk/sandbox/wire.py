"""Answers that break on the wire: cut, reset, stalled, one byte at a time.

ASGI hides the connection, so `WireProtocol` puts its transport into the scope.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_TRANSPORT = "nightdesk.transport"
_TRICKLE_INTERVAL_S = 0.1
# SO_LINGER on with 0 s: closing sends RST instead of FIN.
_LINGER_NOT = struct.pack("ii", 1, 0)


class WireProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, with the connection within reach of the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app: Any = self.app

        async def app_with_transport(scope: Any, receive: Any, send: Any) -> None:
            scope[_TRANSPORT] = transport
            await app(scope, receive, send)

        self.app = app_with_transport


class BrokenResponse:
    """A 200 whose body never arrives whole. Ends early if the client goes."""

    def __init__(self, kind: str, body: bytes, headers: dict[str, str], seconds: float) -> None:
        self._kind = kind
        self._body = body
        self._headers = headers
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport: asyncio.Transport = scope[_TRANSPORT]
        gone = asyncio.ensure_future(_until_gone(receive))
        match self._kind:
            case "reset":
                transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT
                )
                transport.abort()
            case "stall":
                await asyncio.wait([gone], timeout=self._seconds)
            case "cut_body":
                await self._start(send)
                await _send_part(send, self._body[: len(self._body) // 2])
            case _:
                await self._start(send)
                await self._trickle(send, gone)
        transport.close()
        # uvicorn would log an unfinished response unless the connection is gone first.
        await gone

    async def _start(self, send: Send) -> None:
        headers = self._headers | {
            "content-type": "application/json",
            "content-length": str(len(self._body)),
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})

    async def _trickle(self, send: Send, gone: asyncio.Future[None]) -> None:
        # The last byte is kept back: the answer must not arrive whole.
        pieces = min(int(self._seconds / _TRICKLE_INTERVAL_S), len(self._body) - 1)
        for index in range(pieces):
            if gone.done():
                return
            await _send_part(send, self._body[index : index + 1])
            await asyncio.wait([gone], timeout=_TRICKLE_INTERVAL_S)


async def _send_part(send: Send, part: bytes) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
