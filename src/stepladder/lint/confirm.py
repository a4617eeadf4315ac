"""Whether anyone can answer the waits of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator


def nobody_else(document: doc.Workflow) -> Iterator[Finding]:
    """Waits for a second principal, which only exists if there are API keys."""
    for name, state in document.states.items():
        if isinstance(state, doc.Wait) and state.wait.by == "other":
            message = f"`{state.wait.signal}` must come from a second principal, and without API keys there is only one"
            remedy = "set STEPLADDER_API_KEYS, with one key to submit with and one to confirm with"
            yield Finding("nobody_else", pointer(("states", name, "wait", "by")), message, remedy, Severity.WARNING)
