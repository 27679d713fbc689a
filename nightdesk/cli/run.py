"""`nightdesk run`: one article from topic to live page, in this process."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    topic: Annotated[str, typer.Option(help="What the article is about.")],
    keyword: Annotated[str, typer.Option(help="What its readers search for.")],
    site: Annotated[str, typer.Option(help="Where it is published.")],
    language: Annotated[str, typer.Option(help="en, sr-Latn, sr-Cyrl, te.")] = "en",
    audience: Annotated[str, typer.Option(help="For whom it is written.")] = "",
    min_words: Annotated[int, typer.Option(min=50, max=10_000)] = 300,
    source: Annotated[list[str] | None, typer.Option(help="A page or feed to read; repeatable.")] = None,
    model: Annotated[str | None, typer.Option(help="Use this model for every phase not begun yet.")] = None,
    provider: Annotated[str | None, typer.Option(help="anthropic or openai.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write and publish one article; the same topic again goes on where it stood.

    Exit code 0 if its page is live, 1 if it needs a person, waits, is in the hands of another run or was
    given up, 2 for bad input.
    """
    if model is not None and not model.strip():
        raise typer.BadParameter("it is empty: name a model, or leave it out", param_hint="--model")
    from nightdesk.cli.single_run import write_one

    cells = {
        "topic": topic.strip(),
        "keyword": keyword.strip(),
        "site": site,
        "language": language,
        "audience": audience,
        "min_words": str(min_words),
        "sources": " ".join(source or ()),
    }
    if not write_one(cells, model=model, provider=provider, as_json=as_json):
        raise typer.Exit(1)
