"""Publish: the quality gate on the stored revision, then the site, then the proof that the page is live."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import text
from sqlmodel import Session, col, select

from nightdesk.desk import queue, site_lease
from nightdesk.desk.phases.model_phase import required
from nightdesk.desk.quality import Requirements, Severity, Verdict, check_markdown
from nightdesk.desk.queue import Claim, Limits
from nightdesk.desk.site_lease import SiteClaim
from nightdesk.errors import NeedsPerson, Reason
from nightdesk.languages import language
from nightdesk.models.article import Article
from nightdesk.models.phase_outputs import OutlineRow, RevisionRow
from nightdesk.models.source import Source
from nightdesk.publishing.port import Page, Placement
from nightdesk.publishing.slugs import make_slug
from nightdesk.states import Phase

#: A text that the gate holds goes back to optimize once; then a person decides.
LAST_ROUND = 2


@dataclass(frozen=True, slots=True)
class SentBack:
    """The gate held the text and it went back to optimize."""

    note: str


def judge(session: Session, claim: Claim, limits: Limits, lease_s: float) -> RevisionRow | SentBack:
    """Run the gate on the revision of this round, store its verdict, and say what follows.

    A first failure finishes this job and asks optimize for another round, all in the caller's
    transaction.

    A revision that is held for good is returned too: `require_passed` says so after the commit.

    Raises:
        Fenced: if the claim has ended.
    """
    queue.renew(session, claim, lease_s)
    revision = required(session, RevisionRow, claim.article_id)
    verdict = check_markdown(revision.markdown, requirements(session, revision))
    revision.verdict = verdict.as_json()
    session.add(revision)
    session.flush()
    if verdict.ok:
        return revision
    if revision.round < LAST_ROUND:
        rules = ", ".join(sorted({finding.rule for finding in blocking(verdict)}))
        note = f"sent back to optimize by the quality gate: {rules}"
        queue.add_job(session, claim.article_id, Phase.OPTIMIZE, revision.round + 1, limits)
        queue.finish(session, claim, note)
        return SentBack(note)
    return revision


def require_passed(revision: RevisionRow) -> None:
    """Raise `NeedsPerson` with the findings of a stored verdict that holds the text."""
    verdict = revision.verdict or {}
    if verdict.get("ok"):
        return
    reasons = tuple(
        Reason(finding["rule"], finding["message"], finding["passage"])
        for finding in verdict.get("findings", [])
        if finding["severity"] == Severity.BLOCK
    )
    rules = ", ".join(sorted({reason.rule for reason in reasons}))
    raise NeedsPerson(f"the quality gate holds it after a repair: {rules}", reasons=reasons)


def requirements(session: Session, revision: RevisionRow) -> Requirements:
    """What the gate asks of an article."""
    article = session.exec(select(Article).where(Article.id == revision.article_id)).one()
    outline = required(session, OutlineRow, revision.article_id)
    sources = session.exec(select(Source).where(Source.article_id == revision.article_id)).all()
    return Requirements(
        language=language(article.language),
        keyword=article.keyword,
        min_words=article.min_words,
        required_h2=tuple(part["heading"] for part in outline.sections),
        known_links=frozenset(url for source in sources for url in (source.url, source.final_url) if url),
        waived=frozenset(revision.waived),
    )


def blocking(verdict: Verdict) -> list[Any]:
    """The findings that hold a text."""
    return [finding for finding in verdict.findings if finding.severity is Severity.BLOCK]


# Dates on the page are the database's; publishing the same round again changes none of them.
_BEGIN = text("""
    INSERT INTO nightdesk.publications (article_id, round, job_id, claim_no, site, state)
    VALUES (:article_id, :round, :job_id, :claim_no, :site, 'creating')
    ON CONFLICT (article_id) DO UPDATE SET
        updated_at = CASE WHEN publications.round = excluded.round THEN publications.updated_at
                          ELSE nightdesk.now() END,
        round = excluded.round, job_id = excluded.job_id, claim_no = excluded.claim_no,
        started_at = nightdesk.now()
    RETURNING published_at, updated_at
""")

_PLACED = text("""
    UPDATE nightdesk.publications
    SET state = 'placed', external_id = :external_id, slug = :slug, url = :url,
        content_sha256 = :content_sha256
    WHERE article_id = :article_id AND claim_no = :claim_no AND job_id = :job_id
""")

_VERIFIED = text("""
    UPDATE nightdesk.publications SET state = 'verified', verified_at = nightdesk.now()
    WHERE article_id = :article_id AND claim_no = :claim_no AND job_id = :job_id
""")


def begin(session: Session, claim: Claim, site: SiteClaim, revision: RevisionRow, lease_s: float) -> Page:
    """Note that a page is about to be made, and compose it. Commit before the site is asked.

    Raises:
        Fenced, SiteBusy: if the claim on the job, or on the site, has ended.
    """
    site_lease.renew(session, site)
    queue.renew(session, claim, lease_s)
    article = session.exec(select(Article).where(Article.id == claim.article_id)).one()
    dates = session.connection().execute(
        _BEGIN, _fence(claim) | {"round": revision.round, "site": claim.site}
    )
    published_at, updated_at = dates.one()
    known = language(article.language)
    slug = article.slug or make_slug(
        revision.slug or revision.title, known, fallback=f"article-{article.number}"
    )
    return Page(
        marker=article.id,
        slug=slug,
        language=known,
        title=revision.title,
        excerpt=revision.excerpt,
        meta_description=revision.meta_description,
        markdown=revision.markdown,
        published_at=published_at,
        updated_at=updated_at,
    )


def placed(session: Session, claim: Claim, site: SiteClaim, placement: Placement, lease_s: float) -> None:
    """The site has the page; its address is the article's from now on.

    Raises:
        Fenced, SiteBusy: if the claim on the job, or on the site, has ended.
    """
    site_lease.renew(session, site)
    queue.renew(session, claim, lease_s)
    values = asdict(placement)
    session.connection().execute(_PLACED, _fence(claim) | values)
    article = session.exec(select(Article).where(col(Article.id) == claim.article_id)).one()
    article.slug = article.slug or placement.slug
    session.add(article)
    session.flush()


def verified(session: Session, claim: Claim) -> None:
    """The live page was proven; the job is done.

    Raises:
        Fenced: if the claim has ended.
    """
    session.connection().execute(_VERIFIED, _fence(claim))
    queue.finish(session, claim)


def _fence(claim: Claim) -> dict[str, Any]:
    return {"article_id": claim.article_id, "job_id": claim.job_id, "claim_no": claim.claim_no}
