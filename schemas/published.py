"""Published workflows, as the HTTP API answers about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from stepladder.schemas.shape import ResponseModel


class WorkflowVersion(ResponseModel):
    """A published version of a workflow."""

    name: str
    version: int
    hash: str
    retired: bool = Field(description="no new jobs of it are accepted; existing ones continue")
    paused_at: datetime | None = Field(description="since when its jobs are paused")
    paused_by: str | None
    created_at: datetime


class DocumentWarning(ResponseModel):
    """Something in the document that deserves a second look."""

    pointer: str
    reason: str
    code: str
    remedy: str
    line: int | None
    column: int | None


class PublishedWorkflow(WorkflowVersion):
    """A published version, with warnings about its document."""

    warnings: tuple[DocumentWarning, ...]


class WorkflowDocument(WorkflowVersion):
    """A published version with its document."""

    document: dict[str, Any]


class WorkflowVersions(ResponseModel):
    """Versions, by name and number."""

    workflows: tuple[WorkflowVersion, ...]
