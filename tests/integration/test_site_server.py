"""The static sites stay at one address, whoever serves them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from nightdesk.config import Settings
from nightdesk.errors import ConfigError
from nightdesk.publishing.serve import LoopbackServer
from nightdesk.site_server import serve_static_sites


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, site_port=0)


def page(address: str) -> str:
    return httpx.get(f"{address}/garden/", trust_env=False, timeout=2).text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "sites"
    (folder / "garden").mkdir(parents=True)
    (folder / "garden" / "index.html").write_text("<p>here</p>", encoding="utf-8")
    return folder


def test_a_second_run_serves_on_when_the_first_one_ends(root: Path, tmp_path: Path) -> None:
    with ExitStack() as first, ExitStack() as second:
        address = first.enter_context(serve_static_sites(root, settings(tmp_path)))
        assert second.enter_context(serve_static_sites(root, settings(tmp_path))) == address
        assert "here" in page(address)
        first.close()
        deadline = time.monotonic() + 10
        while True:
            try:
                assert "here" in page(address)
                return
            except httpx.TransportError:
                assert time.monotonic() < deadline, "nobody serves the pages any more"
                time.sleep(0.1)


def test_the_address_is_the_same_the_next_time(root: Path, tmp_path: Path) -> None:
    with serve_static_sites(root, settings(tmp_path)) as once:
        pass
    with serve_static_sites(root, settings(tmp_path)) as again:
        assert again == once


def test_a_stranger_on_the_remembered_port_is_named(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightdesk.site_server.WAIT_FOR_PORT_S", 0.3)
    with serve_static_sites(root, settings(tmp_path)) as address:
        port = int(address.rpartition(":")[2])
    (tmp_path / "other").mkdir()
    with (
        LoopbackServer(tmp_path / "other", port),
        pytest.raises(ConfigError, match="taken by another"),
        serve_static_sites(root, settings(tmp_path)),
    ):
        pass
