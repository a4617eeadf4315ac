"""All jobs that match a filter judged again, page by page; one page is judged while the next is read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.judge.drift import Drift
from stepladder.judge.revalidate import revalidate
from stepladder.queries.answers import memories, pages
from stepladder.schemas.finding import BadDocumentError
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from uuid import UUID

    from stepladder.models.store import Store
    from stepladder.queries.answers import Memory
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.services.replays import Replays
    from stepladder.workflows.machine import Machine

OTHER_WORKFLOW = "other_workflow"
"""Why a job is skipped: the document is of another workflow."""


@dataclass(frozen=True, slots=True)
class By:
    """What jobs are judged by: a machine, or their own document with changes, if any."""

    machine: Machine | None = None
    changes: JsonObject | None = None


class Revalidation:
    """``seen`` is called after each page, with the counts so far."""

    def __init__(self, store: Store, replays: Replays, by: By, seen: Callable[[Drift], None] = lambda _: None) -> None:
        self._store = store
        self._replays = replays
        self._by = by
        self._seen = seen
        self._definitions: dict[tuple[str, int, str | None], Machine | str] = {}

    async def of(self, wanted: JobFilter, most: int | None = None) -> Drift:
        """Judges the jobs that match the filter, newest first, up to ``most`` of them.

        Raises ``UnreachableError`` when the database breaks.
        """
        drift = Drift()
        following: asyncio.Task[tuple[Memory, ...]] | None = None
        async for page in up_to(pages(self._store.database, wanted), most):
            reading = asyncio.create_task(memories(self._store.database, page, answers=True))
            if following is not None:
                await self._judge(await following, drift)
            following = reading
        if following is not None:
            await self._judge(await following, drift)
        return drift

    async def _judge(self, page: Sequence[Memory], drift: Drift) -> None:
        machines = [await self._machine(memory) for memory in page]
        await asyncio.to_thread(_judge, page, machines, drift)
        self._seen(drift)

    async def _machine(self, memory: Memory) -> Machine | str:
        if self._by.machine is not None:
            return self._by.machine if self._by.machine.name == memory.workflow else OTHER_WORKFLOW
        at = (memory.workflow, memory.version, memory.variant)
        if at not in self._definitions:
            try:
                definition = await self._replays.definition(memory, self._by.changes or {})
            except BadDocumentError as error:
                self._definitions[at] = error.findings[0].message
            else:
                self._definitions[at] = _why(definition) if isinstance(definition, Refused) else definition.machine
        return self._definitions[at]


def _why(refused: Refused) -> str:
    first = f": {refused.findings[0].message}" if refused.findings else ""
    return f"{refused.reason}{first}"


def _judge(page: Sequence[Memory], machines: Sequence[Machine | str], drift: Drift) -> None:
    for memory, machine in zip(page, machines, strict=True):
        if isinstance(machine, str):
            drift.skip(machine)
        else:
            drift.add(memory.job.id, revalidate(machine, memory.job, memory.answers))


async def up_to(found: AsyncIterator[tuple[UUID, ...]], most: int | None) -> AsyncIterator[tuple[UUID, ...]]:
    """The pages, cut off after ``most`` jobs."""
    left = most
    async for page in found:
        if left is not None and left <= len(page):
            yield page[:left]
            return
        left = None if left is None else left - len(page)
        yield page
