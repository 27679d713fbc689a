from __future__ import annotations

import html

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from nightdesk.publishing.render import markdown_to_html

ALLOWED = {
    *("html", "head", "body", "h2", "h3", "h4", "h5", "h6", "p", "blockquote", "pre", "hr", "br"),
    *("ol", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "a", "code", "em", "img"),
    "strong",
}
FRAGMENTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVa\tScript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>)",
    "[x](vbscript:x)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](//example.org/x.png)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<https://example.org/?<script>>",
    '[x](https://example.org "\\" onmouseover=alert(1)")',
    '```"><script>\nx\n```',
    '``` x" onload=y\nz\n```',
    "<svg/onload=alert(1)>",
    "<!-- nightdesk:00000000-0000-4000-8000-000000000001 -->",
    "| a | b |\n| :- | -: |\n| <b>1</b> | [x](javascript:1) |",
    "# one\n\n## two",
    "</div></article></main><style>*{display:none}</style>",
    "&lt;script&gt;",
    "\\<script>",
    "\x00\ud800",
    "> * 1. ",
]
markdowns = st.lists(st.sampled_from(FRAGMENTS) | st.text(), max_size=8).map("\n".join) | st.lists(
    st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=8
).map("".join)


def nodes(markup: str) -> list[LexborNode]:
    return LexborHTMLParser(markup).css("*")


@settings(deadline=None)
@given(markdowns)
@example("".join(FRAGMENTS))
def test_no_markdown_gives_html_that_can_run(markdown: str) -> None:
    markup = markdown_to_html(markdown)
    assert "<!--" not in markup
    for node in nodes(markup):
        assert node.tag in ALLOWED
        for name, value in node.attributes.items():
            assert not name.startswith("on")
            if name in {"href", "src"}:
                address = regex.sub(r"[\x00-\x20]", "", html.unescape(value or ""))
                scheme = regex.match(r"([a-zA-Z][\w+.-]*):", address)
                assert scheme is None or scheme[1].lower() in {"http", "https", "mailto"}


@settings(deadline=None)
@given(markdowns)
def test_every_link_to_another_site_is_marked_and_no_picture_is_fetched_from_one(
    markdown: str,
) -> None:
    for node in nodes(markdown_to_html(markdown)):
        address = node.attributes.get("href") or node.attributes.get("src") or ""
        if not address.startswith(("http:", "https:", "//")):
            continue
        assert node.tag == "a"
        assert node.attributes.get("rel") == "nofollow noopener"


@settings(deadline=None)
@given(st.text())
def test_the_same_markdown_gives_the_same_html(markdown: str) -> None:
    assert markdown_to_html(markdown) == markdown_to_html(markdown)


@pytest.mark.parametrize(
    ("markdown", "markup"),
    [
        ("**a** *b* `c`", "<p><strong>a</strong> <em>b</em> <code>c</code></p>\n"),
        ("## A\n\n### B", "<h2>A</h2>\n<h3>B</h3>\n"),
        ("# Title again", "<h2>Title again</h2>\n"),
        ("[a](/other/)", '<p><a href="/other/">a</a></p>\n'),
        (
            "[a](https://x.org/)",
            '<p><a href="https://x.org/" rel="nofollow noopener">a</a></p>\n',
        ),
        ("[a](mailto:a@x.org)", '<p><a href="mailto:a@x.org">a</a></p>\n'),
        ("![A *night* train](https://x.org/a.png)", "<p>A night train</p>\n"),
        ("![own](/a.png)", '<p><img src="/a.png" alt="own"></p>\n'),
        ("3. c", '<ol start="3">\n<li>c</li>\n</ol>\n'),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
        ("తెలుగు – ćирилица 🚆", "<p>తెలుగు – ćирилица 🚆</p>\n"),
        ("", ""),
    ],
)
def test_markdown_becomes_plain_html(markdown: str, markup: str) -> None:
    assert markdown_to_html(markdown) == markup


def test_tables_keep_their_alignment() -> None:
    markup = markdown_to_html("| a | b |\n| - | -: |\n| 1 | 2 |")
    assert '<td style="text-align:right">2</td>' in markup
    assert "<td>1</td>" in markup


def test_no_deep_nesting_brings_it_down() -> None:
    for opening in (">", "[", "![", "*", "- ", "`"):
        markdown_to_html(opening * 5_000)
