"""`nightdesk check`: the quality gate on any file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nightdesk.cli.output import console, print_json
from nightdesk.errors import InputError, InputProblem
from nightdesk.languages import language as find_language

#: An article is a hundredth of it. Judging takes some seconds per megabyte.
MAX_BYTES = 2_000_000


def check(
    file: Annotated[Path, typer.Argument(help="A Markdown (.md) or HTML (.html) file.")],
    language: Annotated[str, typer.Option(help="en, sr-Latn, sr-Cyrl, te.")] = "en",
    keyword: Annotated[str | None, typer.Option(help="Must be in the first 100 words.")] = None,
    min_words: Annotated[int, typer.Option(min=0, help="0: any length.")] = 0,
    h2: Annotated[list[str] | None, typer.Option(help="A heading that must be there; repeatable.")] = None,
    waive: Annotated[list[str] | None, typer.Option(help="A rule to waive; repeatable.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the quality gate on a file; exit code 1 if it would be held."""
    from nightdesk.desk.quality import RULES, Requirements, check_html, check_markdown

    _require_words("--keyword", [] if keyword is None else [keyword])
    _require_words("--h2", h2 or [])
    for rule in waive or []:
        if rule not in RULES:
            said = f"there is no rule '{rule}': the rules are {', '.join(sorted(RULES))}"
            raise typer.BadParameter(said, param_hint="--waive")
    requirements = Requirements(
        language=find_language(language),
        keyword=keyword,
        min_words=min_words,
        required_h2=tuple(h2 or ()),
        waived=frozenset(waive or ()),
    )
    look = check_html if file.suffix.lower() in (".html", ".htm", ".xhtml") else check_markdown
    verdict = look(_read(file), requirements)
    if as_json:
        print_json(verdict.as_json())
    else:
        for finding in verdict.findings:
            style = "red" if finding.severity == "block" else "yellow"
            console.print(
                Text(f"{finding.rule}: ", style=style), Text(finding.message), sep="", soft_wrap=True
            )
            if finding.passage:
                console.print(Text(f"    «{finding.passage}»"), soft_wrap=True)
        state = Text("passes", style="green") if verdict.ok else Text("would be held", style="red")
        console.print(Text(f"{file}: "), state, Text(f" ({verdict.words} words)"), sep="", soft_wrap=True)
    if not verdict.ok:
        raise typer.Exit(1)


def _require_words(option: str, given: list[str]) -> None:
    if any(not words.strip() for words in given):
        raise typer.BadParameter("it is empty: give words, or leave it out", param_hint=option)


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(str(file), [InputProblem(f"cannot be read: {error.strerror}")]) from None
    if len(raw) > MAX_BYTES:
        raise InputError(str(file), [InputProblem(f"larger than {MAX_BYTES // 1_000_000} MB: no article is")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(str(file), [InputProblem("not UTF-8: save it as UTF-8", line)]) from None
