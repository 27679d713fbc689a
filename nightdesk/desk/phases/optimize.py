"""Optimize: the draft edited, with slug, excerpt and meta description; also the repair of a held text."""

from __future__ import annotations

from typing import ClassVar

from sqlmodel import Session

from nightdesk.desk.composition import assemble, one_line
from nightdesk.desk.outputs import RevisedText
from nightdesk.desk.phases.draft import text_problems
from nightdesk.desk.phases.model_phase import Inputs, ModelPhase, common, latest, required, upsert
from nightdesk.desk.quality import count_words
from nightdesk.desk.queue import Claim
from nightdesk.languages import language
from nightdesk.models.phase_outputs import BriefRow, DraftRow, RevisionRow
from nightdesk.states import Phase

NO_FINDINGS = "(none)"


class OptimizeInputs(Inputs):
    """The text as it stands and, in a repair, what the gate found in it."""

    findings: tuple[str, ...]
    title: str
    introduction: str
    sections: tuple[tuple[str, str], ...]  #: heading, body

    def variables(self, nonce: str) -> dict[str, str]:
        parts = [f"current section: {heading}\n{body}" for heading, body in self.sections]
        return super().variables(nonce) | {
            "findings": "\n".join(f"- {finding}" for finding in self.findings) or NO_FINDINGS,
            "title": self.title,
            "introduction": self.introduction,
            "sections": "\n\n".join(parts),
        }


class OptimizePhase(ModelPhase[OptimizeInputs, RevisedText]):
    """Edits the article."""

    phase: ClassVar = Phase.OPTIMIZE

    def inputs(self, session: Session, claim: Claim) -> OptimizeInputs:
        brief = required(session, BriefRow, claim.article_id)
        _, fields = common(session, claim.article_id)
        fields["audience"] = fields["audience"] or brief.audience
        text: DraftRow | RevisionRow = required(session, DraftRow, claim.article_id)
        findings: tuple[str, ...] = ()
        if claim.round > 1 and (revision := latest(session, RevisionRow, claim.article_id)) is not None:
            text, findings = revision, _findings(revision)
        return OptimizeInputs(
            **fields,
            findings=findings,
            title=text.title,
            introduction=text.introduction,
            sections=tuple((part["heading"], part["body"]) for part in text.sections),
        )

    def problems(self, inputs: OptimizeInputs, output: RevisedText) -> list[str]:
        found = text_problems([heading for heading, _ in inputs.sections], output)
        found += [
            f"`{name}` is empty"
            for name in ("excerpt", "meta_description")
            if not getattr(output, name).strip()
        ]
        return found

    def save(self, session: Session, claim: Claim, inputs: OptimizeInputs, output: RevisedText) -> None:
        markdown = assemble(output.introduction, output.sections)
        upsert(
            session,
            RevisionRow,
            claim,
            {
                "title": one_line(output.title),
                "slug": one_line(output.slug),
                "excerpt": one_line(output.excerpt),
                "meta_description": one_line(output.meta_description),
                "introduction": output.introduction,
                "sections": [section.model_dump() for section in output.sections],
                "markdown": markdown,
                "words": count_words(markdown, language(inputs.language)),
                "changes": output.changes,
                "verdict": None,
                "waived": [],
            },
        )


def _findings(revision: RevisionRow) -> tuple[str, ...]:
    findings = (revision.verdict or {}).get("findings", [])
    return tuple(
        f"{finding['rule']}: {finding['message']}"
        + (f" Found: «{finding['passage']}»" if finding["passage"] else "")
        for finding in findings
        if finding["severity"] == "block"
    )
