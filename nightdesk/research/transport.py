"""The transport of every fetch: it connects only where the guard says, however it is called."""

from __future__ import annotations

import ssl

import httpx

from nightdesk.research.addresses import AddressGuard, host_of


class GuardedTransport(httpx.AsyncBaseTransport):
    """Connects to a checked address while `Host`, SNI and the certificate check keep the name.

    Raises (from a request):
        Permanent, Transient: from `AddressGuard.endpoints`.
        httpx.TransportError: if no address could be connected to, or the exchange failed.
    """

    def __init__(
        self,
        guard: AddressGuard,
        verify: ssl.SSLContext | bool = True,
        inner: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._guard = guard
        # No connection is kept: the pool knows connections by address, and two names behind one
        # address must not share one that was opened, and whose certificate was checked, for the other.
        self._inner = inner or httpx.AsyncHTTPTransport(
            verify=verify, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to the first address that accepts a connection."""
        failure: httpx.TransportError | None = None
        for endpoint in await self._guard.endpoints(request.url):
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=endpoint.address, port=endpoint.port),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host_of(request.url)},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or httpx.ConnectError(f"{host_of(request.url)} has no address")

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()
