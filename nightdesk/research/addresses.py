"""Which addresses may be fetched: the guard against requests into private networks (SSRF).

A source's address may have been chosen by a feed, a redirect or a model. So every hop is parsed
once, its name is resolved once, every address that the name has must be public, and the connection
goes to one of those very addresses: a second answer of the DNS is never asked for.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import httpx
import idna
import regex

from nightdesk.errors import ConfigError, Permanent, Transient
from nightdesk.text import shorten, storable

#: Host name and port → textual IP addresses. May raise `OSError` if the name has none.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_CHARS = 4096
_HOST_NAME = regex.compile(r"(?!.{254})[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
# A last label like this makes resolvers read the whole host as one of IPv4's many spellings
# (URL Standard, "ends in a number"): 2130706433, 127.1, 0x7f.1.
_NUMBER_AT_END = regex.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")

# Not to be reached although `is_global` may say otherwise, depending on Python's version: shared
# address space, IETF protocol assignments, 6to4 relays, benchmarking, IPv6 in IPv4's clothes.
_CLOSED_V4 = [
    ipaddress.IPv4Network(net) for net in ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15")
]
# Global unicast is all of 2000::/3 (RFC 4291): that leaves out NAT64 64:ff9b::/96 and IPv4-mapped
# addresses too. Within it, these lead elsewhere: Teredo and protocol assignments, documentation,
# 6to4 (which carries any IPv4 address), documentation again.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_CLOSED_V6 = [ipaddress.IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


class Endpoint(NamedTuple):
    """Where a connection goes."""

    address: str
    port: int


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses that the operating system knows for a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def is_public(address: str) -> bool:
    """Whether a textual IP address is reachable for, and the same for, everybody."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in net for net in _CLOSED_V4)
    return ip in _UNICAST_V6 and ip.scope_id is None and not any(ip in net for net in _CLOSED_V6)


class AddressGuard:
    """Decides where a request may go.

    Raises (on creation):
        ConfigError: if a rule of `connect_to` is malformed.
    """

    def __init__(self, connect_to: Mapping[str, str], resolve: Resolver | None = None) -> None:
        self._resolve = resolve or system_resolver
        self._rules = dict(_rule(key, value) for key, value in connect_to.items())

    def check(self, text: str) -> httpx.URL:
        """The URL without its fragment, if its form is allowed; its address is checked on connecting.

        Raises:
            Permanent: if it is malformed, not http or https, carries a user name or names a port
                other than 80 and 443 that `connect_to` does not name.
        """
        shown = f"'{shorten(storable(text), 200)}'"
        url = _parse(text.strip(), shown)
        if url.scheme not in _DEFAULT_PORTS:
            raise Permanent(f"{shown} is not fetched: give an address with http:// or https://")
        if url.userinfo:
            raise Permanent(f"{shown} is not fetched: remove the user name before the '@'")
        host, port = _host(url, shown), port_of(url)
        if port not in _DEFAULT_PORTS.values() and self._rule_for(host, port) is None:
            raise Permanent(
                f"{shown} is not fetched: only ports 80 and 443 are, and port {port} of {host} is "
                "not named in `connect_to`"
            )
        return url.copy_with(fragment=None)

    async def endpoints(self, url: httpx.URL) -> list[Endpoint]:
        """Where to connect for a checked URL, best first. Asks the resolver exactly once.

        Raises:
            Permanent: if any of its addresses is not public.
            Transient: if its name cannot be resolved.
        """
        host, port = _host(url, f"'{url}'"), port_of(url)
        rule = self._rule_for(host, port)
        if rule is not None:
            return [rule]
        addresses = [host] if _is_address(host) else await self._lookup(host, port)
        for address in addresses:
            if not is_public(address):
                raise Permanent(
                    f"{host} is not fetched: its address {shorten(address, 50)} is not public "
                    "(`connect_to` can name a private one that is meant)"
                )
        return [Endpoint(address, port) for address in addresses]

    async def _lookup(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Transient(f"the name {host} cannot be resolved: {error}") from error
        if not addresses:
            raise Transient(f"the name {host} cannot be resolved: it has no address")
        return addresses

    def _rule_for(self, host: str, port: int) -> Endpoint | None:
        return self._rules.get((host, port)) or (
            self._rules.get((host, None)) if port in _DEFAULT_PORTS.values() else None
        )


def port_of(url: httpx.URL) -> int:
    """The port of an http or https URL, given or implied; -1 for another scheme without one."""
    return url.port if url.port is not None else _DEFAULT_PORTS.get(url.scheme, -1)


def host_of(url: httpx.URL) -> str:
    """The host as certificates and rules name it: ASCII, lower case, no brackets, no final dot."""
    return url.raw_host.decode("ascii").lower().removesuffix(".")


def _parse(text: str, shown: str) -> httpx.URL:
    # Backslashes are slashes to browsers and letters to others; a URL that is read in two ways
    # is not read at all.
    if not text or len(text) > _MAX_URL_CHARS or "\\" in text:
        raise Permanent(f"{shown} is not fetched: it is not a web address")
    try:
        return httpx.URL(text)
    except (httpx.InvalidURL, idna.IDNAError, ValueError) as error:
        raise Permanent(f"{shown} is not fetched: it is not a web address ({error})") from error


def _host(url: httpx.URL, shown: str) -> str:
    host = host_of(url)
    named = _HOST_NAME.fullmatch(host) and not _NUMBER_AT_END.fullmatch(host)
    if not named and not _is_address(host):
        raise Permanent(f"{shown} is not fetched: '{shorten(host, 80)}' is not a host's name")
    return host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _rule(key: str, value: str) -> tuple[tuple[str, int | None], Endpoint]:
    shown = f"connect_to: '{key}' → '{value}'"
    try:
        source, target = httpx.URL(f"http://{key}"), httpx.URL(f"http://{value}")
        host = _host(source, shown)
        # httpx drops http's own port, so that `host:80` would look like `host`.
        port = 80 if source.port is None and key.endswith(":80") else source.port
        address, to_port = host_of(target), 80 if value.endswith(":80") else target.port
    except (httpx.InvalidURL, idna.IDNAError, ValueError, Permanent) as error:
        raise ConfigError(f"{shown} cannot be used: {error}") from error
    if not _is_address(address) or to_port is None or source.path != "/" or target.path != "/":
        raise ConfigError(
            f"{shown} cannot be used: write host[:port] on the left and address:port on the right, "
            "such as 'news.example' = '127.0.0.1:8471'"
        )
    return (host, port), Endpoint(address, to_port)
