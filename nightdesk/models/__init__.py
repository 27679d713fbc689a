"""Every table, one file each; importing this package makes them all known to Alembic."""

from nightdesk.models.article import Article
from nightdesk.models.base import metadata
from nightdesk.models.budget import (
    BudgetDecision,
    BudgetPolicy,
    BudgetRow,
    BudgetTransition,
    SpendSum,
)
from nightdesk.models.dead_letter import DeadLetter
from nightdesk.models.job import Job
from nightdesk.models.job_attempt import JobAttempt
from nightdesk.models.lane_pause import LanePause
from nightdesk.models.ledger_entry import LedgerEntry
from nightdesk.models.llm_call import LlmCall
from nightdesk.models.phase_outputs import BriefRow, DraftRow, OutlineRow, RevisionRow
from nightdesk.models.prompt_version import PromptVersion
from nightdesk.models.publication import Publication
from nightdesk.models.site_lease import SiteLease
from nightdesk.models.source import Source

__all__ = [
    "Article",
    "BriefRow",
    "BudgetDecision",
    "BudgetPolicy",
    "BudgetRow",
    "BudgetTransition",
    "DeadLetter",
    "DraftRow",
    "Job",
    "JobAttempt",
    "LanePause",
    "LedgerEntry",
    "LlmCall",
    "OutlineRow",
    "PromptVersion",
    "Publication",
    "RevisionRow",
    "SiteLease",
    "Source",
    "SpendSum",
    "metadata",
]
