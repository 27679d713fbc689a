"""Outline: the title and the H2s, from the brief."""

from __future__ import annotations

from typing import ClassVar

from sqlmodel import Session

from nightdesk.desk.composition import bullets, one_line
from nightdesk.desk.outputs import Outline
from nightdesk.desk.phases.model_phase import Inputs, ModelPhase, common, required, upsert
from nightdesk.desk.queue import Claim
from nightdesk.models.phase_outputs import BriefRow, OutlineRow
from nightdesk.states import Phase

MIN_SECTIONS, MAX_SECTIONS = 2, 12
MAX_TITLE_CHARS = 150
NO_FACTS = "(none: write without figures that need proof)"


class BriefInputs(Inputs):
    """The topic and the parts of the brief that later phases use."""

    angle: str
    facts: tuple[str, ...]
    notes: str

    def variables(self, nonce: str) -> dict[str, str]:
        return super().variables(nonce) | {
            "angle": self.angle,
            "facts": bullets(self.facts, empty=NO_FACTS),
            "notes": self.notes or "(none)",
        }


class OutlineInputs(BriefInputs):
    """The whole brief."""

    questions: tuple[str, ...]
    terms: tuple[str, ...]

    def variables(self, nonce: str) -> dict[str, str]:
        return super().variables(nonce) | {
            "questions": bullets(self.questions, empty="(none)"),
            "terms": ", ".join(self.terms) or "(none)",
        }


class OutlinePhase(ModelPhase[OutlineInputs, Outline]):
    """Makes the outline."""

    phase: ClassVar = Phase.OUTLINE

    def inputs(self, session: Session, claim: Claim) -> OutlineInputs:
        brief = required(session, BriefRow, claim.article_id)
        _, fields = common(session, claim.article_id)
        fields["audience"] = fields["audience"] or brief.audience
        return OutlineInputs(
            **fields,
            angle=brief.angle,
            facts=statements(brief),
            notes=brief.notes,
            questions=tuple(brief.questions),
            terms=tuple(brief.terms),
        )

    def problems(self, inputs: OutlineInputs, output: Outline) -> list[str]:
        found = []
        headings = [one_line(section.heading).casefold() for section in output.sections]
        if not one_line(output.title):
            found.append("`title` is empty")
        elif len(output.title) > MAX_TITLE_CHARS:
            found.append(f"`title` is longer than {MAX_TITLE_CHARS} characters")
        if not MIN_SECTIONS <= len(headings) <= MAX_SECTIONS:
            found.append(f"`sections` has {len(headings)} entries, not {MIN_SECTIONS} to {MAX_SECTIONS}")
        if not all(headings):
            found.append("a section has an empty `heading`")
        if len(set(headings)) < len(headings):
            found.append("two sections have the same `heading`")
        return found

    def save(self, session: Session, claim: Claim, inputs: OutlineInputs, output: Outline) -> None:
        sections = [
            {"heading": one_line(section.heading), "points": section.points} for section in output.sections
        ]
        upsert(session, OutlineRow, claim, {"title": one_line(output.title), "sections": sections})


def statements(brief: BriefRow) -> tuple[str, ...]:
    """The facts of a brief as later prompts show them."""
    return tuple(f"{fact['statement']} ({fact['source_url']})" for fact in brief.facts)
