"""Dead letters know their run's page; jobs whose runs died are found by an index.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("dead_letters", sa.Column("run_url", sa.Text(), nullable=True), schema="nightdesk")
    op.create_index(
        "ix_jobs_suspects",
        "jobs",
        ["phase", sa.literal_column("priority DESC"), "created_at", "id"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("state = 'ready' AND deaths >= 2"),
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_suspects", "jobs", schema="nightdesk")
    op.drop_column("dead_letters", "run_url", schema="nightdesk")
