"""What arrived from the engine, and the ladder's verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepladder.schemas.outcomes import Outcome, Rungs

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.outcomes import Cause


@dataclass(frozen=True, slots=True)
class Received:
    """A complete HTTP response, of any status.

    ``body`` is exactly what came over the wire once the transfer's own framing is off; ``streamed`` says that it is
    a ``text/event-stream``. ``retry_after_s`` is the header ``Retry-After`` in seconds, if there was one.
    """

    status: int
    body: bytes
    streamed: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """No complete answer arrived. ``body`` holds the bytes that did, ``status`` the HTTP status if headers arrived."""

    cause: Cause
    detail: str
    body: bytes = b""
    status: int | None = None
    streamed: bool = False


Arrival = Received | Lost


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the engine counted them."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Completion:
    """The one completion inside an answer, the same whether it was streamed or not.

    ``content`` is the exact text as UTF-8, or None for null. ``finish_reason`` is the engine's own word, known or not.
    """

    content: bytes | None = None
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    tool_calls: bool = False
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with an answer: where (a JSON pointer), by which keyword or rule, and why."""

    pointer: str
    reason: str
    source: str = ""

    def as_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "reason": self.reason, "source": self.source}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The ladder's verdict on one arrival.

    ``errors`` are why it is not valid, in order; ``observed`` are broken rules of severity ``observe``, which reject
    nothing. ``output`` is the parsed answer and is set for ``valid`` alone. ``schema_known_bad`` says that the
    engine was known to refuse this schema while it answered a known-good one.
    """

    outcome: Outcome
    cause: str | None = None
    rungs: Rungs = field(default_factory=Rungs)
    errors: tuple[Violation, ...] = ()
    observed: tuple[Violation, ...] = ()
    output: Json = None
    completion: Completion = field(default_factory=Completion)
    retry_after_s: float | None = None
    schema_known_bad: bool = False

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.VALID
