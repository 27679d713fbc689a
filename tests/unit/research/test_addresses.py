"""Which addresses count as public, and which URLs are looked at at all."""

from __future__ import annotations

import ipaddress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.errors import ConfigError, Permanent
from nightdesk.research import FetchPolicy
from nightdesk.research.addresses import AddressGuard, is_public

V4_CLOSED = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
    "240.0.0.0/4",
]  # fmt: skip
V6_CLOSED = [
    "::/128", "::1/128", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
    "2001:db8::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]  # fmt: skip


@given(st.sampled_from(V4_CLOSED + V6_CLOSED), st.data())
def test_no_address_of_a_closed_network_is_public(network: str, data: st.DataObject) -> None:
    net = ipaddress.ip_network(network)
    offset = data.draw(st.integers(0, net.num_addresses - 1))
    assert not is_public(str(net[offset]))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001:81b::200e"]
)
def test_ordinary_addresses_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_in_ipv6_clothes_is_never_public(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for clothes in (0xFFFF << 32, 0x64FF9B << 96, 0x2002 << 112, 0):
        shift = 80 if clothes == 0x2002 << 112 else 0
        assert not is_public(str(ipaddress.IPv6Address(clothes | number << shift)))


@given(st.text())
def test_any_text_is_checked_or_refused(text: str) -> None:
    guard = AddressGuard({})
    for candidate in (text, f"http://{text}", f"http://host.example/{text}", f"http://host.example:{text}/"):
        try:
            url = guard.check(candidate)
        except Permanent as error:
            assert "is not fetched" in str(error)
        else:
            assert url.scheme in ("http", "https")
            assert url.port in (None, 80, 443)
            assert not url.userinfo
            assert not url.fragment
            assert str(guard.check(str(url))) == str(url)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "0x{:x}", "0{:o}", "{}.", "0x{:X}."]))
async def test_numbers_are_never_names(number: int, spelling: str) -> None:
    async def trap(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} was looked up")

    guard = AddressGuard({}, trap)
    with pytest.raises(Permanent):
        await guard.endpoints(guard.check(f"http://{spelling.format(number)}/"))


async def test_connect_to_works_per_host_and_port() -> None:
    async def nobody(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    guard = AddressGuard({"a.example": "127.0.0.1:8471", "b.example:81": "[::1]:9"}, nobody)
    assert await guard.endpoints(guard.check("https://A.example./x")) == [("127.0.0.1", 8471)]
    assert await guard.endpoints(guard.check("http://b.example:81/")) == [("::1", 9)]
    for url in ("http://b.example/", "http://c.a.example/"):
        with pytest.raises(Permanent, match="not public"):
            await guard.endpoints(guard.check(url))
    with pytest.raises(Permanent, match="connect_to"):
        guard.check("http://a.example:81/")


@pytest.mark.parametrize("rule", [("a.example", "localhost:1"), ("a.example", "127.0.0.1"), ("", "127.0.0.1:1"),
                                  ("a.example/x", "127.0.0.1:1"), ("a:b", "127.0.0.1:1")])  # fmt: skip
def test_a_malformed_rule_is_told(rule: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="connect_to"):
        AddressGuard(dict([rule]))


@pytest.mark.parametrize(
    "limits", [{"user_agent": ""}, {"user_agent": "(x)"}, {"max_bytes": 0}, {"total_timeout_s": -1.0},
               {"extract_timeout_s": float("nan")}],
)  # fmt: skip
def test_a_policy_that_cannot_work_is_told(limits: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        FetchPolicy(**({"user_agent": "Nightdesk/0.1"} | limits))  # type: ignore[arg-type]


def test_httpx_is_not_more_generous_than_the_check() -> None:
    assert AddressGuard({}).check("HTTP://News.Example:80/a#b") == httpx.URL("http://news.example/a")
