"""The phases that ask a model; `publish` needs none and stands apart."""

from __future__ import annotations

from typing import Any

from nightdesk.desk.phases.draft import DraftPhase
from nightdesk.desk.phases.model_phase import ModelPhase
from nightdesk.desk.phases.optimize import OptimizePhase
from nightdesk.desk.phases.outline import OutlinePhase
from nightdesk.desk.phases.research import ResearchPhase
from nightdesk.states import Phase

MODEL_PHASES: dict[Phase, ModelPhase[Any, Any]] = {
    phase.phase: phase for phase in (ResearchPhase(), OutlinePhase(), DraftPhase(), OptimizePhase())
}

__all__ = ["MODEL_PHASES", "ModelPhase"]
