"""What the processes agree on: prices, bounds, shares of an engine."""

from __future__ import annotations

import sqlalchemy as sa

from stepladder.models.columns import metadata, moment

# What a million tokens of a model cost, from ``since`` until ``until``; null is the price that holds now. ``*`` stands
# for the models that are not named. A price that changed stays, so that what is past costs what it did.
prices = sa.Table(
    "prices",
    metadata,
    sa.Column("model", sa.Text, nullable=False),
    moment("since", required=True),
    moment("until"),
    sa.Column("prompt", sa.Numeric, nullable=False),
    sa.Column("completion", sa.Numeric, nullable=False),
    sa.Column("currency", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("model", "since"),
)

# How many jobs of a principal workers may have in hand at once; the empty name stands for those that are not named.
principal_bounds = sa.Table(
    "principal_bounds",
    metadata,
    sa.Column("principal", sa.Text, primary_key=True),
    sa.Column("most", sa.Integer, nullable=False),
    sa.CheckConstraint("most >= 0", name="most"),
)

# How many requests a process may have at an engine at once. ``bound`` is what it knows of the engine; its row is good
# for as long as it is renewed.
engine_shares = sa.Table(
    "engine_shares",
    metadata,
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("worker", sa.Uuid, nullable=False),
    sa.Column("bound", sa.Integer, nullable=False),
    sa.Column("share", sa.Integer, nullable=False),
    sa.Column("in_use", sa.Integer, nullable=False),
    sa.Column("wanted", sa.Integer, nullable=False),
    moment("until", required=True),
    sa.PrimaryKeyConstraint("engine", "worker"),
)
