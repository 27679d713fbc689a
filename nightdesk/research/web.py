"""One request at a time to a host, within a budget of network time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from nightdesk.errors import Transient
from nightdesk.research.addresses import host_of
from nightdesk.research.body import ACCEPT_ENCODING, read_start
from nightdesk.research.policy import FetchPolicy

Sleep = Callable[[float], Awaitable[None]]

_CONNECT_S = 5.0  # of one address; a name may have several
_ACCEPT = (
    "text/html,application/xhtml+xml,application/rss+xml,application/atom+xml,"
    "application/xml;q=0.9,text/plain;q=0.8"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; `body` is empty if it was not wanted, `complete` is false if it was cut off."""

    url: httpx.URL
    status: int
    headers: httpx.Headers
    body: bytes
    complete: bool

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case."""
        content_type: str = self.headers.get("content-type", "")
        return content_type.partition(";")[0].strip().lower()


class Budget:
    """Seconds of network time that are left; waiting for a host's turn is not network time."""

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self.left_s = total_s

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """Raises `TimeoutError` in the block when nothing is left."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self.left_s):
                yield
        finally:
            self.left_s -= loop.time() - started


class Web:
    """GET without redirects, cookies, proxies or netrc, politely."""

    def __init__(self, policy: FetchPolicy, transport: httpx.AsyncBaseTransport, sleep: Sleep) -> None:
        self._delay_s = policy.per_host_delay_s
        self._sleep = sleep
        self._turns: dict[str, asyncio.Lock] = {}
        self._visited: set[str] = set()
        self._client = httpx.AsyncClient(
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(policy.total_timeout_s, connect=_CONNECT_S),
            headers={
                "User-Agent": policy.user_agent,
                "Accept": _ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
            },
        )

    async def get(
        self,
        url: httpx.URL,
        budget: Budget,
        max_bytes: int,
        wanted: Callable[[Answer], bool] = lambda answer: answer.status == httpx.codes.OK,
    ) -> Answer:
        """The answer to one GET, with its body if it is `wanted` by status and headers.

        Raises:
            Permanent: if the guard refuses the address or the body cannot be decoded.
            Transient: if the exchange failed or took longer than the budget allows.
        """
        async with self._turn(host_of(url)):
            try:
                async with budget.spend():
                    return await self._exchange(url, max_bytes, wanted)
            except TimeoutError as error:
                raise Transient(f"{url} gave no whole answer within {budget.total_s:g} s") from error
            except httpx.TimeoutException as error:
                raise Transient(f"{url} did not answer in time") from error
            except httpx.HTTPError as error:
                raise Transient(f"{url} could not be read: {error or repr(error)}") from error

    async def aclose(self) -> None:
        """Close the client and its transport."""
        await self._client.aclose()

    async def _exchange(self, url: httpx.URL, max_bytes: int, wanted: Callable[[Answer], bool]) -> Answer:
        async with self._client.stream("GET", url) as response:
            head = Answer(url, response.status_code, response.headers, b"", True)
            if not wanted(head):
                return head
            body, complete = await read_start(response, max_bytes)
            return Answer(url, head.status, head.headers, body, complete)

    @asynccontextmanager
    async def _turn(self, host: str) -> AsyncIterator[None]:
        async with self._turns.setdefault(host, asyncio.Lock()):
            if host in self._visited and self._delay_s:
                await self._sleep(self._delay_s)
            self._visited.add(host)
            yield
