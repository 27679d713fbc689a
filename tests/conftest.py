"""What holds for every test: no network but loopback, no settings or keys from the environment."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings


def _forget_the_operator() -> None:
    """A test must not see the operator's settings, nor a key that could be spent."""
    for name in list(os.environ):
        if name.startswith(("NIGHTDESK_", "PREFECT_")) and not name.startswith("NIGHTDESK_TEST_"):
            del os.environ[name]
        if name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
            del os.environ[name]


def _forbid_the_network() -> None:
    connect = socket.socket.connect

    def loopback_only(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])
            if host != "localhost" and not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
                raise AssertionError(f"a test tried to reach {host}: only loopback is allowed")
        return connect(self, address)

    socket.socket.connect = loopback_only  # type: ignore[method-assign]


# Machines are noisy: no property fails because an example took long.
settings.register_profile("nightdesk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nightdesk")

# At import, before the conftest of any folder sets what its own tests need.
_forget_the_operator()
_forbid_the_network()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder of this test's own."""
    return tmp_path / "data"
