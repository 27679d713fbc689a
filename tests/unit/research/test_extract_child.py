"""What a reader of a page does not see is not text, and bytes become the letters that were meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.research.extract_child import Extract, Task, decoded, extract

HIDDEN = [
    "<p style='display : none'>INJECTED</p>", "<p hidden>INJECTED</p>", "<div aria-hidden='TRUE'><p>INJECTED</p></div>",
    "<!-- INJECTED -->", "<script>INJECTED</script>", "<style>INJECTED</style>", "<img src='a.png' alt='INJECTED'>",
    "<p style='font-size:0'>INJECTED</p>", "<p style='color:red;visibility:/**/hidden'>INJECTED</p>",
    "<p style='opacity:0.0'>INJECTED</p>", "<p style='position:absolute;left:-9999px'>INJECTED</p>",
    "<template><p>INJECTED</p></template>", "<noscript><p>INJECTED</p></noscript>",
    "<p>Some <span hidden>INJECTED</span> words.</p>", "<p title='INJECTED'>A moth.</p>",
    "<script type='application/ld+json'>{\"@type\":\"Article\",\"articleBody\":\"INJECTED\"}</script>",
    "<p style='display:none!important'>INJECTED</p>", "<P STYLE='DISPLAY:NONE'>INJECTED</P>",
    "<div style='display:none'><div style='display:block'><p>INJECTED</p></div></div>",
    "<svg><text>INJECTED</text></svg>", "<p style='font-size:0px;color:red'>INJECTED</p>",
]  # fmt: skip
SHOWN = [
    "<p style='opacity:0.9'>Owls are heard at night.</p>", "<p style='font-size:0.8em'>Owls are heard at night.</p>",
    "<p style='color:black;display:block'>Owls are heard at night.</p>", "<p>Owls are <!-- x -->heard at night.</p>",
    "<p>Owls <script>1</script>are <span hidden>not </span>heard at night.</p>",
    "<p aria-hidden='false'>Owls are heard at night.</p>", "<p style='left:-9px'>Owls are heard at night.</p>",
]  # fmt: skip
FILLER = "<p>Moths come to the night garden when the lamps are low and the air is still.</p>" * 4


def _extract(body: str) -> Extract:
    task = Task(
        kind="page", url="http://news.example/", content_type="text/html", max_text_chars=40_000, feed_items=3,
        timeout_s=10, memory_bytes=2**30,
    )  # fmt: skip
    return extract(task, body.encode())


def _pages(markup: str) -> list[str]:
    return [
        f"<html><body><article><h1>Moths</h1>{FILLER}{markup}</article></body></html>",
        f"<html><body><p>Moths come.</p>{markup}</body></html>",
    ]


@pytest.mark.parametrize("markup", HIDDEN)
def test_what_is_hidden_is_not_text(markup: str) -> None:
    for page in _pages(markup):
        text = _extract(page)["text"]
        assert "INJECTED" not in text
        assert "Moths come" in text


@pytest.mark.parametrize("markup", SHOWN)
def test_what_is_shown_is_text(markup: str) -> None:
    for page in _pages(markup):
        assert "Owls are heard at night." in " ".join(_extract(page)["text"].split())


def test_a_page_that_waits_for_its_script_is_read() -> None:
    page = _pages("")[0].replace("<body>", "<body style='opacity:0'>")
    assert "Moths come" in _extract(page)["text"]


SERBIAN = "Ноћни лептири виде светло."


@pytest.mark.parametrize(
    ("codec", "kind", "head"),
    [
        ("utf-8", "text/html; charset=iso-8859-1", ""),
        ("utf-8", "text/html; charset=rot13", ""),
        ("cp1251", "text/html; charset=windows-1251", ""),
        ("cp1251", "text/html", '<meta charset="windows-1251">'),
        ("cp1251", "text/html", '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">'),
        ("cp1251", "text/html; charset=no-such-thing", '<meta charset="windows-1251">'),
        ("cp1251", "text/html", '<?xml version="1.0" encoding="windows-1251"?>'),
        ("utf-16", "text/html; charset=utf-8", ""),
        ("cp1251", "text/html", SERBIAN * 20),
    ],
)
def test_the_charset_is_found(codec: str, kind: str, head: str) -> None:
    assert SERBIAN in decoded(f"{head}<p>{SERBIAN}</p>".encode(codec), kind)


@given(st.binary(max_size=200), st.text(max_size=60))
def test_any_bytes_are_decoded(body: bytes, content_type: str) -> None:
    decoded(body, f"text/html; charset={content_type}")


@given(st.text(max_size=300))
def test_utf_8_is_never_mistaken(text: str) -> None:
    whole = f"é{text}"
    assert decoded(whole.encode(), "text/html; charset=iso-8859-2") == whole
