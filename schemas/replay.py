"""What a replay may be."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a replay is to do."""

    REVALIDATE = "revalidate"
    """Judge what is stored again. Nothing is asked, and nothing written."""
    RESUME = "resume"
    """Go on from the turn that failed, by the same version."""
    FORK = "fork"
    """Go on from any turn, by a changed document or another version."""
