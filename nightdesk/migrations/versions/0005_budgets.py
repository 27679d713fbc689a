"""Budgets, and sums of what is spent.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SCOPES = "scope_kind IN ('all', 'site', 'phase')"
NOW = sa.text("nightdesk.now()")

# Each entry counts in every scope that it belongs to, by the minute and by the second. In one order, so that
# two bookings that meet in several rows wait for each other and do not lock each other out.
SUMS = """
    SELECT scope.kind, scope.name, width.s, date_bin(make_interval(secs => width.s), occurred_at, 'epoch'),
           sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END)
    FROM {entries}
    CROSS JOIN LATERAL (VALUES ('all', ''), ('site', site), ('phase', phase)) scope (kind, name)
    CROSS JOIN (VALUES (60), (1)) width (s)
    WHERE book = 'money' AND scope.name IS NOT NULL
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""


def upgrade() -> None:
    op.create_table(
        "budgets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("block_version", sa.Text(), nullable=True),
        sa.Column("block_policy_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_budgets")),
        schema="nightdesk",
    )
    op.create_table(
        "budget_policies",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("budget", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("cap_usd", sa.Numeric(20, 10), nullable=False),
        sa.Column("window_kind", sa.Text(), nullable=False),
        sa.Column("window_s", sa.Integer(), nullable=True),
        sa.Column("time_zone", sa.Text(), nullable=True),
        sa.Column("warn_ratio", sa.Numeric(20, 10), nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_name", sa.Text(), nullable=False),
        sa.Column("cheap_at_warn", sa.Boolean(), nullable=False),
        sa.Column("priority_at_warn", sa.Integer(), nullable=True),
        sa.Column("on_error", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.CheckConstraint("window_kind IN ('rolling', 'day')", name=op.f("ck_budget_policies_window_kind")),
        sa.CheckConstraint(SCOPES, name=op.f("ck_budget_policies_scope_kind")),
        sa.CheckConstraint("on_error IN ('open', 'closed')", name=op.f("ck_budget_policies_on_error")),
        sa.CheckConstraint("cap_usd > 0 AND cap_usd < 1e9", name=op.f("ck_budget_policies_cap_usd")),
        sa.CheckConstraint("warn_ratio > 0 AND warn_ratio <= 1", name=op.f("ck_budget_policies_warn_ratio")),
        sa.CheckConstraint(
            "(window_kind = 'rolling') = (window_s IS NOT NULL)", name=op.f("ck_budget_policies_window_s")
        ),
        sa.CheckConstraint(
            "(window_kind = 'day') = (time_zone IS NOT NULL)", name=op.f("ck_budget_policies_time_zone")
        ),
        sa.CheckConstraint(
            "(scope_kind = 'all') = (scope_name = '')", name=op.f("ck_budget_policies_scope_name")
        ),
        sa.ForeignKeyConstraint(
            ["budget"], ["nightdesk.budgets.name"], name=op.f("fk_budget_policies_budget_budgets")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_policies")),
        schema="nightdesk",
    )
    op.create_index(
        "ix_budget_policies_budget_id",
        "budget_policies",
        ["budget", sa.text("id DESC")],
        unique=False,
        schema="nightdesk",
    )
    op.create_table(
        "spend_sums",
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_name", sa.Text(), nullable=False),
        sa.Column("width_s", sa.SmallInteger(), nullable=False),
        sa.Column("starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("usd", sa.Numeric(20, 10), nullable=False),
        sa.CheckConstraint(SCOPES, name=op.f("ck_spend_sums_scope_kind")),
        sa.PrimaryKeyConstraint("scope_kind", "scope_name", "width_s", "starts", name=op.f("pk_spend_sums")),
        schema="nightdesk",
    )
    op.create_table(
        "budget_decisions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("policy_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("admitted", sa.Integer(), nullable=False),
        sa.Column("refused_job_id", sa.BigInteger(), nullable=True),
        sa.Column("refused_usd", sa.Numeric(20, 10), nullable=True),
        sa.Column("spent_usd", sa.Numeric(20, 10), nullable=False),
        sa.Column("held_usd", sa.Numeric(20, 10), nullable=False),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["nightdesk.budget_policies.id"],
            name=op.f("fk_budget_decisions_policy_id_budget_policies"),
        ),
        sa.ForeignKeyConstraint(
            ["refused_job_id"], ["nightdesk.jobs.id"], name=op.f("fk_budget_decisions_refused_job_id_jobs")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_decisions")),
        schema="nightdesk",
    )
    op.create_index("ix_budget_decisions_at", "budget_decisions", ["at"], unique=False, schema="nightdesk")
    op.create_table(
        "budget_transitions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("budget", sa.Text(), nullable=False),
        sa.Column("policy_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("spent_usd", sa.Numeric(20, 10), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('none', 'warn', 'cap')", name=op.f("ck_budget_transitions_state")),
        sa.ForeignKeyConstraint(
            ["budget"], ["nightdesk.budgets.name"], name=op.f("fk_budget_transitions_budget_budgets")
        ),
        sa.ForeignKeyConstraint(
            ["policy_id"],
            ["nightdesk.budget_policies.id"],
            name=op.f("fk_budget_transitions_policy_id_budget_policies"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_transitions")),
        schema="nightdesk",
    )
    op.create_index(
        "ix_budget_transitions_budget_id",
        "budget_transitions",
        ["budget", sa.text("id DESC")],
        unique=False,
        schema="nightdesk",
    )
    op.create_index(
        "ix_budget_transitions_untold",
        "budget_transitions",
        ["id"],
        unique=False,
        schema="nightdesk",
        postgresql_where=sa.text("told_at IS NULL"),
    )
    _sums()

    for event, each in (("UPDATE OR DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
        op.execute(f"""
            CREATE TRIGGER append_only_{each.lower()} BEFORE {event} ON nightdesk.budget_policies
            FOR EACH {each} EXECUTE FUNCTION nightdesk.refuse_change()
        """)


def _sums() -> None:
    columns = "(scope_kind, scope_name, width_s, starts, usd)"
    op.execute(
        f"INSERT INTO nightdesk.spend_sums {columns} {SUMS.format(entries='nightdesk.ledger_entries')}"
    )
    op.execute(f"""
        CREATE FUNCTION nightdesk.add_to_spend_sums() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO nightdesk.spend_sums {columns} {SUMS.format(entries="added")}
            ON CONFLICT (scope_kind, scope_name, width_s, starts)
            DO UPDATE SET usd = spend_sums.usd + excluded.usd;
            RETURN NULL;
        END $$
    """)
    op.execute("""
        CREATE TRIGGER add_to_spend_sums AFTER INSERT ON nightdesk.ledger_entries
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION nightdesk.add_to_spend_sums()
    """)


def downgrade() -> None:
    op.execute("DROP TRIGGER add_to_spend_sums ON nightdesk.ledger_entries")
    op.execute("DROP FUNCTION nightdesk.add_to_spend_sums()")
    for table in ("budget_transitions", "budget_decisions", "spend_sums", "budget_policies", "budgets"):
        op.drop_table(table, schema="nightdesk")
