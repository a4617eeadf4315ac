"""Jobs: the machine's memory of where each is, and the queue's of who has it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from stepladder.models.columns import listed, metadata, moment, one_of, written_at
from stepladder.schemas.job import Failure, JobStatus

# ``due_at`` is the machine's own: it rests until then. ``wake_at`` is the queue's: when a worker should look, never if
# null. ``notified_at`` is when the broker was last told. ``fence`` rises with every change of hands; an older value
# can write nothing. ``taken_over`` says that a worker was lost, until the machine has taken note of it.
# ``parent`` is the job that called this one: in its visit ``parent_visit``, as the child of index ``parent_index``.
# ``status`` is the machine's own as well: that a job is paused is kept beside it, in
# ``paused_at``, so that it continues as what it was; and that its workflow is, in ``held_at``.
# ``hold_at`` says that retention is to leave the job alone, and ``raw_gone_at`` and ``events_gone_at`` when it did its
# work on it.
jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("lineage", sa.Uuid, nullable=False),
    sa.Column("replay_of", sa.Uuid, sa.ForeignKey("jobs.id")),
    sa.Column("bulk", sa.Uuid, sa.ForeignKey("bulks.id")),
    sa.Column("variant", sa.Text, sa.ForeignKey("variants.hash")),
    sa.Column("experiment", sa.Uuid, sa.ForeignKey("experiments.id")),
    sa.Column("arm", sa.Text),
    sa.Column("sample", sa.Integer),
    sa.Column("parent", sa.Uuid, sa.ForeignKey("jobs.id")),
    sa.Column("parent_visit", sa.Integer),
    sa.Column("parent_index", sa.Integer),
    sa.Column("depth", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("state", sa.Text),
    sa.Column("waiting_for", sa.Text),
    sa.Column("failure", sa.Text),
    sa.Column("failure_detail", sa.Text),
    sa.Column("input", JSON, nullable=False),
    sa.Column("result", JSON),
    sa.Column("metadata", JSONB, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("scopes", ARRAY(sa.Text)),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("token_budget", sa.BigInteger),
    sa.Column("tokens", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("turn_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("event_count", sa.Integer, nullable=False),
    sa.Column("signals_received", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("fence", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("taken_over", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("lease_owner", sa.Text),
    moment("lease_until"),
    moment("wake_at"),
    written_at("notified_at"),
    moment("due_at"),
    moment("paused_at"),
    moment("held_at"),
    moment("hold_at"),
    sa.Column("hold_by", sa.Text),
    moment("raw_gone_at"),
    moment("events_gone_at"),
    moment("deadline_at"),
    moment("created_at", required=True),
    moment("started_at"),
    moment("finished_at"),
    sa.ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
    one_of("status", JobStatus),
    one_of("failure", Failure),
    sa.CheckConstraint("num_nulls(parent, parent_visit, parent_index) IN (0, 3)", name="parent"),
    sa.CheckConstraint("(lease_owner IS NULL) = (lease_until IS NULL)", name="lease"),
    sa.CheckConstraint(
        f"(finished_at IS NOT NULL) = (status IN ({listed(status for status in JobStatus if status.final)}))",
        name="finished",
    ),
)
sa.Index(
    "jobs_wake",
    jobs.c.priority.desc(),
    jobs.c.wake_at,
    postgresql_where=sa.text("wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL"),
)
sa.Index("jobs_lineage", jobs.c.lineage)
sa.Index("jobs_replay_of", jobs.c.replay_of, postgresql_where=jobs.c.replay_of.is_not(None))
sa.Index(
    "jobs_experiment",
    jobs.c.experiment,
    jobs.c.sample,
    jobs.c.arm,
    unique=True,
    postgresql_where=jobs.c.experiment.is_not(None),
)
sa.Index(
    "jobs_shadow",
    jobs.c.experiment,
    jobs.c.replay_of,
    unique=True,
    postgresql_where=sa.text("experiment IS NOT NULL AND replay_of IS NOT NULL"),
)
sa.Index("jobs_bulk", jobs.c.bulk, jobs.c.replay_of, unique=True, postgresql_where=jobs.c.bulk.is_not(None))
sa.Index(
    "jobs_lanes",
    jobs.c.priority,
    jobs.c.principal,
    jobs.c.workflow,
    jobs.c.wake_at,
    postgresql_where=sa.text("wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL AND lease_owner IS NULL"),
)
sa.Index("jobs_leased", jobs.c.lease_owner, postgresql_where=jobs.c.lease_owner.is_not(None))
sa.Index("jobs_created", jobs.c.created_at, jobs.c.id)
sa.Index("jobs_workflow_created", jobs.c.workflow, jobs.c.created_at, jobs.c.id)
sa.Index("jobs_metadata", jobs.c.metadata, postgresql_using="gin", postgresql_ops={"metadata": "jsonb_path_ops"})
sa.Index("jobs_live", jobs.c.status, postgresql_where=jobs.c.finished_at.is_(None))
sa.Index("jobs_finished", jobs.c.finished_at, postgresql_where=jobs.c.finished_at.is_not(None))
sa.Index("jobs_lost", jobs.c.created_at, jobs.c.id, postgresql_where=sa.text("status IN ('failed', 'cancelled')"))
for _kind in ("raw", "events"):
    sa.Index(
        f"jobs_{_kind}",
        jobs.c.finished_at,
        postgresql_where=sa.text(f"finished_at IS NOT NULL AND {_kind}_gone_at IS NULL AND hold_at IS NULL"),
    )

# Of two that start the same child, one does.
sa.Index(
    "jobs_parent",
    jobs.c.parent,
    jobs.c.parent_visit,
    jobs.c.parent_index,
    unique=True,
    postgresql_where=jobs.c.parent.is_not(None),
)
sa.Index("jobs_live_children", jobs.c.parent, postgresql_where=sa.text("parent IS NOT NULL AND finished_at IS NULL"))
