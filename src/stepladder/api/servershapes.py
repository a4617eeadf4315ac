"""What the API answers of workflows and of its servers. Fields may be added; none is renamed or dropped."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from stepladder.api.shapes import Shape


class Version(Shape):
    """A published version."""

    name: str
    version: int
    hash: str
    retired: bool = Field(description="new jobs are not made of it; those that there are go on")
    paused_at: datetime | None = Field(description="since when nobody goes on with its jobs")
    paused_by: str | None
    created_at: datetime


class Finding(Shape):
    pointer: str
    reason: str
    code: str
    remedy: str
    line: int | None
    column: int | None


class Publication(Version):
    """A published version, with what may be worth a second look in it."""

    warnings: list[Finding]


class Document(Version):
    """A published version, and its definition in full."""

    document: dict[str, Any]


class Workflows(Shape):
    workflows: list[Version]


class EngineIdentity(Shape):
    """What an engine says of itself; what it does not say is null."""

    model: str
    version: str | None
    backend: str | None
    kind: str
    max_model_len: int | None
    models: list[str]


class EngineSlots(Shape):
    """How many requests `workers` together may have at an engine at once, have there, and would like to have."""

    engine: str
    bound: int
    in_use: int
    wanted: int
    workers: int


class Engines(Shape):
    engines: list[EngineIdentity]
    slots: list[EngineSlots]


class Check(Shape):
    name: str
    ok: bool
    detail: str


class Health(Shape):
    status: Literal["ok"]


class Readiness(Shape):
    status: Literal["ready", "not_ready"]
    checks: list[Check]
