"""Outputs of the phases, calls to models, and a ledger that cannot be edited.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

APPEND_ONLY = """
CREATE FUNCTION nightdesk.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'nightdesk.% is append-only: book a reversing entry instead', TG_TABLE_NAME;
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON nightdesk.ledger_entries
    FOR EACH ROW EXECUTE FUNCTION nightdesk.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON nightdesk.ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION nightdesk.refuse_change();
"""


def upgrade() -> None:
    op.create_table(
        "briefs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("angle", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("questions", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("facts", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("terms", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["article_id"], ["nightdesk.articles.id"], name=op.f("fk_briefs_article_id")),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_briefs_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_briefs")),
        sa.UniqueConstraint("article_id", "round", name=op.f("uq_briefs_article_id_round")),
        schema="nightdesk",
    )
    op.create_table(
        "drafts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("introduction", sa.Text(), nullable=False),
        sa.Column("sections", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["article_id"], ["nightdesk.articles.id"], name=op.f("fk_drafts_article_id")),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_drafts_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drafts")),
        sa.UniqueConstraint("article_id", "round", name=op.f("uq_drafts_article_id_round")),
        schema="nightdesk",
    )
    op.create_table(
        "ledger_entries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("natural_key", sa.Text(), nullable=False),
        sa.Column("book", sa.Text(), nullable=False),
        sa.Column("debit", sa.Text(), nullable=False),
        sa.Column("credit", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column(
            "occurred_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column(
            "recorded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("reverses", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("article_id", sa.Uuid(), nullable=True),
        sa.Column("call_id", sa.Uuid(), nullable=True),
        sa.Column("site", sa.Text(), nullable=True),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("price", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("memo", sa.Text(), nullable=False),
        sa.CheckConstraint("book = 'labour' OR unit = 'USD'", name=op.f("ck_ledger_entries_unit")),
        sa.CheckConstraint("book IN ('money', 'promises', 'labour')", name=op.f("ck_ledger_entries_book")),
        sa.CheckConstraint("amount > 0", name=op.f("ck_ledger_entries_amount")),
        sa.CheckConstraint("debit <> credit", name=op.f("ck_ledger_entries_two_accounts")),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_ledger_entries_job_id")),
        sa.ForeignKeyConstraint(
            ["reverses"], ["nightdesk.ledger_entries.id"], name=op.f("fk_ledger_entries_reverses")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entries")),
        sa.UniqueConstraint("natural_key", name=op.f("uq_ledger_entries_natural_key")),
        sa.UniqueConstraint("reverses", name=op.f("uq_ledger_entries_reverses")),
        schema="nightdesk",
    )
    op.create_index(
        op.f("ix_ledger_entries_article_id"),
        "ledger_entries",
        ["article_id"],
        unique=False,
        schema="nightdesk",
    )
    op.create_index(
        "ix_ledger_entries_job_id_book",
        "ledger_entries",
        ["job_id", "book"],
        unique=False,
        schema="nightdesk",
    )
    op.create_index(
        "ix_ledger_entries_occurred_at", "ledger_entries", ["occurred_at"], unique=False, schema="nightdesk"
    )
    op.create_table(
        "llm_calls",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("call_key", sa.Text(), nullable=False),
        sa.Column("ask_no", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("worst_case_usd", sa.Numeric(precision=20, scale=10), nullable=False),
        sa.Column("max_output_tokens", sa.Integer(), nullable=False),
        sa.Column("worst_case_tokens", sa.Integer(), nullable=False),
        sa.Column(
            "sent_at", sa.DateTime(timezone=True), server_default=sa.text("nightdesk.now()"), nullable=False
        ),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("stop", sa.Text(), nullable=True),
        sa.Column("usage", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("raw_usage", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('sent', 'answered', 'rejected', 'unknown', 'not_sent')",
            name=op.f("ck_llm_calls_state"),
        ),
        sa.ForeignKeyConstraint(
            ["article_id"], ["nightdesk.articles.id"], name=op.f("fk_llm_calls_article_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_llm_calls_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_llm_calls")),
        schema="nightdesk",
    )
    op.create_index("ix_llm_calls_article_id", "llm_calls", ["article_id"], unique=False, schema="nightdesk")
    op.create_index(
        "ix_llm_calls_call_key_ask_no", "llm_calls", ["call_key", "ask_no"], unique=False, schema="nightdesk"
    )
    op.create_index("ix_llm_calls_job_id", "llm_calls", ["job_id"], unique=False, schema="nightdesk")
    op.create_index(
        "ix_llm_calls_open",
        "llm_calls",
        ["deadline_at"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("state = 'sent'"),
    )
    op.create_table(
        "outlines",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("sections", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["article_id"], ["nightdesk.articles.id"], name=op.f("fk_outlines_article_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_outlines_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outlines")),
        sa.UniqueConstraint("article_id", "round", name=op.f("uq_outlines_article_id_round")),
        schema="nightdesk",
    )
    op.create_table(
        "publications",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column(
            "published_at",
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
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("slug", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("content_sha256", sa.Text(), nullable=True),
        sa.Column("verified_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('creating', 'placed', 'verified')", name=op.f("ck_publications_state")),
        sa.ForeignKeyConstraint(
            ["article_id"], ["nightdesk.articles.id"], name=op.f("fk_publications_article_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_publications_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_publications")),
        sa.UniqueConstraint("article_id", name=op.f("uq_publications_article_id")),
        schema="nightdesk",
    )
    op.create_table(
        "revisions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("article_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_no", sa.Integer(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("nightdesk.now()"),
            nullable=False,
        ),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("excerpt", sa.Text(), nullable=False),
        sa.Column("meta_description", sa.Text(), nullable=False),
        sa.Column("introduction", sa.Text(), nullable=False),
        sa.Column("sections", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("markdown", sa.Text(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("changes", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("verdict", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("waived", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["article_id"], ["nightdesk.articles.id"], name=op.f("fk_revisions_article_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["nightdesk.jobs.id"], name=op.f("fk_revisions_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_revisions")),
        sa.UniqueConstraint("article_id", "round", name=op.f("uq_revisions_article_id_round")),
        schema="nightdesk",
    )
    op.execute(APPEND_ONLY)


def downgrade() -> None:
    op.drop_table("publications", schema="nightdesk")
    op.drop_table("revisions", schema="nightdesk")
    op.drop_table("drafts", schema="nightdesk")
    op.drop_table("outlines", schema="nightdesk")
    op.drop_table("briefs", schema="nightdesk")
    op.drop_table("ledger_entries", schema="nightdesk")
    op.drop_table("llm_calls", schema="nightdesk")
    op.execute("DROP FUNCTION nightdesk.refuse_change()")
