"""Lanes have a circuit breaker.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "lane_pauses",
        sa.Column("probe", sa.Boolean(), server_default=sa.false(), nullable=False),
        schema="nightdesk",
    )
    op.create_table(
        "lane_health",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("failed_jobs", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("failed_at", postgresql.ARRAY(sa.DateTime(timezone=True)), nullable=False),
        sa.Column("unproven", sa.Boolean(), nullable=False),
        sa.Column("pause_s", sa.Float(), nullable=True),
        sa.Column("probe_job_id", sa.BigInteger(), nullable=True),
        sa.Column("probe_claim_no", sa.Integer(), nullable=True),
        sa.CheckConstraint("kind IN ('provider', 'site')", name=op.f("ck_lane_health_kind")),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_lane_health")),
        schema="nightdesk",
    )
    op.create_table(
        "lane_transitions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("nightdesk.now()"), nullable=False
        ),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('provider', 'site')", name=op.f("ck_lane_transitions_kind")),
        sa.CheckConstraint("change IN ('opened', 'closed')", name=op.f("ck_lane_transitions_change")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lane_transitions")),
        schema="nightdesk",
    )
    op.create_index(
        "ix_lane_transitions_untold",
        "lane_transitions",
        ["id"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("told_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_table("lane_transitions", schema="nightdesk")
    op.drop_table("lane_health", schema="nightdesk")
    op.drop_column("lane_pauses", "probe", schema="nightdesk")
