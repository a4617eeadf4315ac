"""Distinguishes a refused schema from a broken engine when the engine answers HTTP 500 without a reason."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from stepladder.engine.canary import answers_known_good
from stepladder.engine.limiter import ConcurrencyLimiter
from stepladder.schemas.answer import Received
from stepladder.validation.termination import tells_nothing

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.engine.client import EngineClient
    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import JsonObject

log = structlog.get_logger("stepladder.runner")

KEPT_S = 300.0
"""How long it is remembered whether an engine compiles a schema: it may be restarted in another version."""
BROKEN_S = 30.0
"""How long to wait before sending the known-good request again to an engine that failed it."""
TIMEOUT_S = 30.0
MAX_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Suspect:
    """A strict request: the model, the schema's hash and the sampling it was sent with, and its id.

    ``left_s`` is the time that its job has left, None without a deadline.
    """

    model: str
    schema_hash: str
    sampling: JsonObject
    request_id: str
    left_s: float | None = None


@dataclass(slots=True)
class Refusals:
    """What one process has learnt about its engine's schemas. ``clock`` returns seconds."""

    clock: Callable[[], float] = time.monotonic
    limiter: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter)
    _known: OrderedDict[tuple[str, ...], tuple[bool, float]] = field(default_factory=OrderedDict)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def is_known_bad(self, client: EngineClient, arrival: Arrival, suspect: Suspect) -> bool:
        """Whether the engine refuses the schema of the request that ``arrival`` came for.

        A 500 without a reason is decided by another request, the known-good one, sent once in a while for each schema
        and one at a time. If the engine answers it, the schema is bad. Otherwise the engine is broken, not the schema;
        and a schema that it answered lately is good.
        """
        engine = (client.base_url, suspect.model)
        schema = (*engine, suspect.schema_hash)
        if not tells_nothing(arrival):
            if isinstance(arrival, Received) and arrival.status == 200:
                self._remember(schema, KEPT_S, known=False)
                self._known.pop(engine, None)
            return False
        async with self._asking:
            if self._recall(engine) is not None:
                return False
            if (known := self._recall(schema)) is not None:
                return known
            with self.limiter.permit() as permit:
                await permit.acquire()
                async with permit.in_flight():
                    answered = await self._ask(client, suspect)
            if answered:
                self._remember(schema, KEPT_S, known=True)
            else:
                self._remember(engine, BROKEN_S, known=True)
            return answered

    async def _ask(self, client: EngineClient, suspect: Suspect) -> bool:
        request_id = f"{suspect.request_id}-known-good"
        timeout_s = TIMEOUT_S if suspect.left_s is None else min(suspect.left_s, TIMEOUT_S)
        answered = await answers_known_good(
            client, suspect.model, request_id=request_id, timeout_s=timeout_s, sampling=suspect.sampling
        )
        log.warning(
            "engine refuses a schema" if answered else "engine is broken",
            why=f"HTTP 500 without a reason, and a known-good schema {'was' if answered else 'was not'} answered",
            schema=suspect.schema_hash,
            request_id=request_id,
        )
        return answered

    def _recall(self, key: tuple[str, ...]) -> bool | None:
        known, until = self._known.get(key, (None, 0.0))
        return known if self.clock() < until else None

    def _remember(self, key: tuple[str, ...], for_s: float, *, known: bool) -> None:
        self._known[key] = (known, self.clock() + for_s)
        self._known.move_to_end(key)
        while len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
