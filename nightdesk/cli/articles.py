"""`nightdesk articles`: what became of the topics."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from nightdesk.cli.output import complain, console, print_articles, print_json
from nightdesk.money import show_usd
from nightdesk.states import ArticleState

_ALL = 2_147_483_647  # a filter counts only what it lets through
app = typer.Typer(help="Articles: what became of the topics.", no_args_is_help=True)


@app.command("list")
def list_(
    state: Annotated[ArticleState | None, typer.Option(help="Only this state.")] = None,
    site: Annotated[str | None, typer.Option(help="Only this site.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the highest priority first.")] = 1_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List articles with state, words, cost and page."""
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import articles as all_articles

    settings = load_settings()
    with open_database(settings) as database, database.reading() as session:
        everything = all_articles(session, limit=limit if state is site is None else _ALL)
    if site is not None and site not in {*settings.sites, *(one.site for one in everything)}:
        known = ", ".join(sorted(settings.sites))
        raise typer.BadParameter(f"there is no site '{site}': the sites are {known}", param_hint="--site")
    found = [
        one
        for one in everything
        if (state is None or one.state == state) and (site is None or one.site == site)
    ][:limit]
    if as_json:
        print_json(found)
    elif found:
        print_articles(found)
    else:
        console.print("no such articles")


@app.command()
def show(
    number: Annotated[int, typer.Argument(min=1, max=_ALL, help="The article's number in the list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show brief, outline, draft, revision, gate verdict, publication and cost of one article."""
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import article_detail

    with open_database(load_settings()) as database, database.reading() as session:
        detail = article_detail(session, number)
    if detail is None:
        complain(f"there is no article {number}: see `nightdesk articles list`")
        raise typer.Exit(1)
    if as_json:
        print_json(detail)
    else:
        _print(detail)


def _print(detail: dict[str, Any]) -> None:
    summary = detail["summary"]
    _heading(f"{summary.number}. {summary.topic}")
    _line("site", f"{summary.site} ({summary.language}), priority {summary.priority}")
    _line("state", f"{summary.state} ({summary.phase})")
    for reason in summary.reasons:
        passage = f" «{reason['passage']}»" if reason["passage"] else ""
        _line("reason", f"{reason['rule']}: {reason['message']}{passage}")
    for source in detail["sources"]:
        _line("source", f"{source['url']}: {source['error'] or str(source['characters']) + ' characters'}")
    _brief(detail["brief"])
    _outline(detail["outline"])
    _text(detail["draft"], detail["revision"])
    _verdict(detail["revision"])
    if publication := detail["publication"]:
        _heading("publication")
        _line("page", f"{publication['url']} ({publication['state']})")
        _line("verified", str(publication["verified_at"]))
    _heading("cost by phase")
    for row in detail["cost_by_phase"]:
        _line(row["phase"], show_usd(row["cost_usd"]))
    _line("total", f"{show_usd(summary.cost_usd)}, {summary.tokens} tokens")
    for letter in detail["dead_letters"]:
        _heading(f"dead letter ({letter['phase']}, brought by {letter['layer']})")
        _line(letter["error_class"], letter["message"])


def _heading(text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"), soft_wrap=True)


def _line(name: str, value: str) -> None:
    console.print(Text(f"{name:>12}  ", style="dim"), Text(value), sep="", soft_wrap=True)


def _brief(brief: dict[str, Any] | None) -> None:
    if brief is None:
        return
    _heading(f"brief ({brief['prompt_version']}, {brief['model']})")
    _line("angle", brief["angle"])
    _line("audience", brief["audience"])
    for question in brief["questions"]:
        _line("question", question)
    for fact in brief["facts"]:
        _line("fact", f"{fact['statement']} «{fact['quote']}» {fact['source_url']}")
    _line("notes", brief["notes"])


def _outline(outline: dict[str, Any] | None) -> None:
    if outline is None:
        return
    _heading(f"outline ({outline['prompt_version']}, {outline['model']}): {outline['title']}")
    for section in outline["sections"]:
        _line("h2", section["heading"])


def _text(draft: dict[str, Any] | None, revision: dict[str, Any] | None) -> None:
    if draft is not None:
        _heading(f"draft ({draft['prompt_version']}, {draft['model']}), {draft['words']} words")
        _line("title", draft["title"])
    if revision is None:
        return
    _heading(
        f"revision {revision['round']} ({revision['prompt_version']}, {revision['model']}), "
        f"{revision['words']} words"
    )
    for name in ("title", "slug", "excerpt", "meta_description"):
        _line(name.replace("_", " "), revision[name])
    for change in revision["changes"]:
        _line("change", change)
    from rich.markdown import Markdown

    console.print()
    console.print(Markdown(revision["markdown"]))


def _verdict(revision: dict[str, Any] | None) -> None:
    verdict = (revision or {}).get("verdict")
    if verdict is None:
        return
    _heading(f"quality gate: {'passed' if verdict['ok'] else 'held'} (rules {verdict['gate_version']})")
    for finding in verdict["findings"]:
        _line(finding["rule"], f"{finding['message']} «{finding['passage']}»")
