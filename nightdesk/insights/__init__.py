"""The read side: what command line, dashboard, digest and alerts show. Nothing here writes."""

from nightdesk.insights.articles import ArticleSummary, article, article_detail, articles, money_usd
from nightdesk.insights.budgets import BudgetStatus, budget_statuses
from nightdesk.insights.desk import DeskStatus, LetterSummary, desk_status, job_list, letter, letters

__all__ = [
    "ArticleSummary",
    "BudgetStatus",
    "DeskStatus",
    "LetterSummary",
    "article",
    "article_detail",
    "articles",
    "budget_statuses",
    "desk_status",
    "job_list",
    "letter",
    "letters",
    "money_usd",
]
