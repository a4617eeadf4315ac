"""What the processes agree on: prices, bounds, shares of an engine."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from stepladder.models.columns import metadata, moment

# What a million tokens of a model cost, from ``since`` until ``until``; null is the price that holds now. ``*`` stands
# for the models that are not named. A price that changed stays, so that what is past costs what it did.
prices = Table(
    "prices",
    metadata,
    Column("model", Text, nullable=False),
    moment("since", required=True),
    moment("until"),
    Column("prompt", Numeric, nullable=False),
    Column("completion", Numeric, nullable=False),
    Column("currency", Text, nullable=False),
    PrimaryKeyConstraint("model", "since"),
)

# How many jobs of a principal workers may have in hand at once; the empty name stands for those that are not named.
principal_bounds = Table(
    "principal_bounds",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("most", Integer, nullable=False),
    CheckConstraint("most >= 0", name="most"),
)

# How many requests a process may have at an engine at once. ``bound`` is what it knows of the engine; its row is good
# for as long as it is renewed.
engine_shares = Table(
    "engine_shares",
    metadata,
    Column("engine", Text, nullable=False),
    Column("worker", Uuid, nullable=False),
    Column("bound", Integer, nullable=False),
    Column("share", Integer, nullable=False),
    Column("in_use", Integer, nullable=False),
    Column("wanted", Integer, nullable=False),
    moment("until", required=True),
    PrimaryKeyConstraint("engine", "worker"),
)
