"""Jobs: the machine's memory of where each is, and the queue's of who has it."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    text,
)
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
jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("lineage", Uuid, nullable=False),
    Column("replay_of", Uuid, ForeignKey("jobs.id")),
    Column("bulk", Uuid, ForeignKey("bulks.id")),
    Column("variant", Text, ForeignKey("variants.hash")),
    Column("experiment", Uuid, ForeignKey("experiments.id")),
    Column("arm", Text),
    Column("sample", Integer),
    Column("parent", Uuid, ForeignKey("jobs.id")),
    Column("parent_visit", Integer),
    Column("parent_index", Integer),
    Column("depth", Integer, nullable=False, server_default=text("0")),
    Column("workflow", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("state", Text),
    Column("waiting_for", Text),
    Column("failure", Text),
    Column("failure_detail", Text),
    Column("input", JSON, nullable=False),
    Column("result", JSON),
    Column("metadata", JSONB, nullable=False),
    Column("principal", Text, nullable=False),
    Column("scopes", ARRAY(Text)),
    Column("priority", Integer, nullable=False),
    Column("token_budget", BigInteger),
    Column("tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("turn_count", Integer, nullable=False, server_default=text("0")),
    Column("event_count", Integer, nullable=False),
    Column("signals_received", Integer, nullable=False, server_default=text("0")),
    Column("cancel_requested", Boolean, nullable=False, server_default=text("false")),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("taken_over", Boolean, nullable=False, server_default=text("false")),
    Column("lease_owner", Text),
    moment("lease_until"),
    moment("wake_at"),
    written_at("notified_at"),
    moment("due_at"),
    moment("paused_at"),
    moment("held_at"),
    moment("hold_at"),
    Column("hold_by", Text),
    moment("raw_gone_at"),
    moment("events_gone_at"),
    moment("deadline_at"),
    moment("created_at", required=True),
    moment("started_at"),
    moment("finished_at"),
    ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
    one_of("status", JobStatus),
    one_of("failure", Failure),
    CheckConstraint(
        "(parent IS NULL) = (parent_visit IS NULL) AND (parent IS NULL) = (parent_index IS NULL)", name="parent"
    ),
    CheckConstraint("(lease_owner IS NULL) = (lease_until IS NULL)", name="lease"),
    CheckConstraint(
        f"(finished_at IS NOT NULL) = (status IN ({listed(status for status in JobStatus if status.final)}))",
        name="finished",
    ),
)
Index(
    "jobs_wake",
    jobs.c.priority.desc(),
    jobs.c.wake_at,
    postgresql_where=text("wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL"),
)
Index("jobs_lineage", jobs.c.lineage)
Index("jobs_replay_of", jobs.c.replay_of, postgresql_where=jobs.c.replay_of.is_not(None))
Index(
    "jobs_experiment",
    jobs.c.experiment,
    jobs.c.sample,
    jobs.c.arm,
    unique=True,
    postgresql_where=jobs.c.experiment.is_not(None),
)
Index(
    "jobs_shadow",
    jobs.c.experiment,
    jobs.c.replay_of,
    unique=True,
    postgresql_where=text("experiment IS NOT NULL AND replay_of IS NOT NULL"),
)
Index("jobs_bulk", jobs.c.bulk, jobs.c.replay_of, unique=True, postgresql_where=jobs.c.bulk.is_not(None))
Index(
    "jobs_lanes",
    jobs.c.priority,
    jobs.c.principal,
    jobs.c.workflow,
    jobs.c.wake_at,
    postgresql_where=text("wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL AND lease_owner IS NULL"),
)
Index("jobs_leased", jobs.c.lease_owner, postgresql_where=jobs.c.lease_owner.is_not(None))
Index("jobs_created", jobs.c.created_at, jobs.c.id)
Index("jobs_workflow_created", jobs.c.workflow, jobs.c.created_at, jobs.c.id)
Index("jobs_metadata", jobs.c.metadata, postgresql_using="gin", postgresql_ops={"metadata": "jsonb_path_ops"})
Index("jobs_live", jobs.c.status, postgresql_where=jobs.c.finished_at.is_(None))
Index("jobs_finished", jobs.c.finished_at, postgresql_where=jobs.c.finished_at.is_not(None))
Index("jobs_lost", jobs.c.created_at, jobs.c.id, postgresql_where=text("status IN ('failed', 'cancelled')"))
for _kind in ("raw", "events"):
    Index(
        f"jobs_{_kind}",
        jobs.c.finished_at,
        postgresql_where=text(f"finished_at IS NOT NULL AND {_kind}_gone_at IS NULL AND hold_at IS NULL"),
    )

# Of two that start the same child, one does.
Index(
    "jobs_parent",
    jobs.c.parent,
    jobs.c.parent_visit,
    jobs.c.parent_index,
    unique=True,
    postgresql_where=jobs.c.parent.is_not(None),
)
Index("jobs_live_children", jobs.c.parent, postgresql_where=text("parent IS NOT NULL AND finished_at IS NULL"))
