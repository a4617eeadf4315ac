"""What a document asks of the people who answer its waits, and whether there can be such people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator


def nobody_else(document: doc.Workflow) -> Iterator[Finding]:
    """The waits for a second principal, where there are no API keys: everybody is the same one then."""
    for name, state in document.states.items():
        if isinstance(state, doc.Wait) and state.wait.by == "other":
            message = f"`{state.wait.signal}` has to come from a second principal, and without API keys there is one"
            remedy = "set STEPLADDER_API_KEYS, with a key for whoever submits and one for whoever confirms"
            yield Finding("nobody_else", pointer(("states", name, "wait", "by")), message, remedy, Severity.WARNING)
