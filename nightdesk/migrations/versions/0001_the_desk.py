"""The desk: articles, jobs, what is read for them, and the clock.

Revision ID: 0001
Revises: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# STABLE, so that an index on a time is used. The setting is an empty string once it was set.
CLOCK = """
CREATE FUNCTION nightdesk.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        nullif(current_setting('nightdesk.now', true), '')::timestamptz, statement_timestamp())
$$
"""


def upgrade() -> None:
    op.execute(CLOCK)
    op.create_table(
        "articles",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("keyword", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("min_words", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("source_urls", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("slug", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.CheckConstraint("btrim(keyword) <> ''", name=op.f("ck_articles_keyword")),
        sa.CheckConstraint("btrim(topic) <> ''", name=op.f("ck_articles_topic")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_articles")),
        sa.UniqueConstraint("number", name=op.f("uq_articles_number")),
        sa.UniqueConstraint(
            "site", "language", "topic_key", name=op.f("uq_articles_site_language_topic_key")
        ),
        schema="nightdesk",
    )
    op.create_index(op.f("ix_articles_site"), "articles", ["site"], unique=False, schema="nightdesk")
    op.create_table(
        "lane_pauses",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "opened_at", sa.DateTime(timezone=True), server_default=sa.text("nightdesk.now()"), nullable=False
        ),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('provider', 'site')", name=op.f("ck_lane_pauses_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lane_pauses")),
        schema="nightdesk",
    )
    op.create_index(
        "uq_lane_pauses_open",
        "lane_pauses",
        ["kind", "name"],
        unique=True,
        schema="nightdesk",
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "prompt_versions",
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "first_used_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_prompt_versions")),
        schema="nightdesk",
    )
    op.create_table(
        "site_leases",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("locked_by", sa.Text(), nullable=True),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("site", name=op.f("pk_site_leases")),
        schema="nightdesk",
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("reasons", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("deaths", sa.Integer(), nullable=False),
        sa.Column("max_tokens", sa.Integer(), nullable=False),
        sa.Column("max_usd", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("locked_by", sa.Text(), nullable=True),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "phase IN ('research', 'outline', 'draft', 'optimize', 'publish')", name=op.f("ck_jobs_phase")
        ),
        sa.CheckConstraint(
            "state IN ('ready', 'leased', 'waiting', 'failed', 'dead', 'needs_review', 'done', 'cancelled')",
            name=op.f("ck_jobs_state"),
        ),
        sa.ForeignKeyConstraint(["article_id"], ["nightdesk.articles.id"], name=op.f("fk_jobs_article_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("article_id", "phase", "round", name=op.f("uq_jobs_article_id_phase_round")),
        schema="nightdesk",
        postgresql_with={"fillfactor": "75", "autovacuum_vacuum_scale_factor": "0.01"},
    )
    op.create_index(
        "ix_jobs_due",
        "jobs",
        ["due_at"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(
        "ix_jobs_failed",
        "jobs",
        ["updated_at"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("state = 'failed'"),
    )
    op.create_index(
        "ix_jobs_leased",
        "jobs",
        ["locked_until"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "ix_jobs_ready",
        "jobs",
        ["phase", sa.literal_column("priority DESC"), "created_at", "id"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("state = 'ready'"),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("final_url", sa.Text(), nullable=True),
        sa.Column("via_feed", sa.Text(), nullable=True),
        sa.Column(
            "fetched_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("content_type", sa.Text(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("published", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("robots", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["article_id"], ["nightdesk.articles.id"], name=op.f("fk_sources_article_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("article_id", "url", name=op.f("uq_sources_article_id_url")),
        schema="nightdesk",
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("input", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("error_class", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("stack", sa.Text(), nullable=False),
        sa.Column("attempts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("layer", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("resolution", sa.Text(), nullable=True),
        sa.Column("resolved_by", sa.Text(), nullable=True),
        sa.Column("resolved_why", sa.Text(), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["article_id"], ["nightdesk.articles.id"], name=op.f("fk_dead_letters_article_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_dead_letters_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
        sa.UniqueConstraint("job_id", "claim_no", name=op.f("uq_dead_letters_job_id_claim_no")),
        schema="nightdesk",
    )
    op.create_table(
        "job_attempts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_stack", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_job_attempts_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_attempts")),
        sa.UniqueConstraint("job_id", "claim_no", name=op.f("uq_job_attempts_job_id_claim_no")),
        schema="nightdesk",
    )


def downgrade() -> None:
    op.execute("DROP SCHEMA nightdesk CASCADE")
