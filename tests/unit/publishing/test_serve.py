from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from nightdesk.errors import ConfigError
from nightdesk.publishing.serve import LoopbackServer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("served")
    (folder.parent / "outside.txt").write_text("secret")
    for name, text in {
        "index.html": "<p>ఇల్లు</p>",
        "a/index.html": "<p>а</p>",
        "empty/file.txt": "љ",
        "feed.xml": "<feed/>",
        "style.css": "p{}",
        "a/.index.html.tmp": "secret",
        ".site/articles/x.json": "secret",
        ".well-known/x": "secret",
        ".env": "secret",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link.txt").symlink_to(folder.parent / "outside.txt")
    with (
        LoopbackServer(folder) as server,
        httpx.Client(base_url=server.base_url, trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("path", "content_type", "text"),
    [
        ("/", "text/html; charset=utf-8", "<p>ఇల్లు</p>"),
        ("/a/", "text/html; charset=utf-8", "<p>а</p>"),
        ("/empty/file.txt", "text/plain; charset=utf-8", "љ"),
        ("/feed.xml", "application/xml; charset=utf-8", "<feed/>"),
        ("/style.css", "text/css; charset=utf-8", "p{}"),
    ],
)
def test_files_are_served_as_utf8(served: httpx.Client, path: str, content_type: str, text: str) -> None:
    answer = served.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    assert answer.text == text


@pytest.mark.parametrize(
    "path",
    [
        "/.site/articles/x.json",
        "/%2esite/articles/x.json",
        "/.site/",
        "/a/.index.html.tmp",
        "/a/../.env",
        "/a/..%2f.env",
        "/.env",
        "/.well-known/x",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/link.txt",
        "/empty/",
        "/missing",
    ],
)
def test_hidden_files_folders_and_the_world_outside_are_not_served(served: httpx.Client, path: str) -> None:
    answer = served.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text
    assert "file.txt" not in answer.text


def test_nothing_can_be_written(served: httpx.Client) -> None:
    assert served.put("/a/index.html", content=b"x").status_code == 405


def test_it_answers_on_this_machine_only_and_stops_with_its_block(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with LoopbackServer(tmp_path / "new") as server:
        assert server.port > 0
        assert server.base_url == f"http://127.0.0.1:{server.port}"
        assert httpx.get(server.base_url, trust_env=False).status_code == 404
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.base_url, trust_env=False)
    assert set(threading.enumerate()) <= before


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with (
        LoopbackServer(tmp_path) as first,
        pytest.raises(ConfigError, match=str(first.port)),
        LoopbackServer(tmp_path, first.port),
    ):
        pass


def test_the_port_asked_for_is_used_again_at_once(tmp_path: Path) -> None:
    with LoopbackServer(tmp_path) as first:
        httpx.get(first.base_url, trust_env=False)
    with LoopbackServer(tmp_path, first.port) as second:
        assert second.port == first.port
