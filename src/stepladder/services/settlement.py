"""Settling a call that may have taken effect: a person's settlement is checked before it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.models.records import Settling
from stepladder.runner.tools import MAX_RESULT_BYTES, breaks
from stepladder.schemas.answer import Violation
from stepladder.schemas.job import CHILDREN, SETTLEMENT, JobStatus
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.runner.machines import Machines
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job, OpenSettlement
    from stepladder.workflows.events import Settled
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.visits import ToolCall


@dataclass(frozen=True, slots=True)
class Misfit:
    """The tool cannot return this result: all violations of the tool's result schema."""

    tool: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class NotKept:
    """Why a settlement was not stored, for people."""

    settling: Settling
    reason: str


async def settle(
    store: Store, reads: Reads, machines: Machines, job: Job, said: Settled, key: str | None = None
) -> Settling | Misfit | NotKept:
    """Stores a settlement of the call that the job waits for: ``ACCEPTED``, or ``DUPLICATE`` if it was stored before.

    ``key`` names the call, to be sure. Raises ``BadDocumentError`` where there is a result and this process lacks the
    workflow's tools, which are needed to check it.
    """
    found = await reads.unsettled(job.id)
    if found is None or key not in (None, found.key):
        settling = await store.settled_before(job.id, said, key)
    else:
        if said.done:
            machine = await machines.get(job.workflow, job.version, job.variant)
            broken = misfits(machine, found, said.result)
            if broken:
                return Misfit(found.tool, broken)
        settling = await store.settle(job.id, found.key, said)
    match settling:
        case Settling.ACCEPTED | Settling.DUPLICATE:
            return settling
        case Settling.CONTRADICTED:
            return NotKept(settling, "it was settled differently before, and a settlement is final")
        case Settling.NOT_ASKED:
            return NotKept(settling, _standing(job, found, key))


def misfits(machine: Machine, call: OpenSettlement | ToolCall, result: Json) -> tuple[Violation, ...]:
    """The result's violations of the tool's result schema; its size is limited like the tool's own."""
    size = len(json_text(result).encode())
    if size > MAX_RESULT_BYTES:
        return (Violation("", f"has {size:,} bytes; {MAX_RESULT_BYTES:,} are allowed", "size"),)
    return breaks(machine.tool(call.state, call.tool).returns, result)


def _standing(job: Job, found: OpenSettlement | None, key: str | None) -> str:
    if found is not None and key is not None:
        return f"it waits for settlement of the call {found.key}, and not of {key[:100]}"
    match job.status:
        case JobStatus.WAITING if job.waiting_for == CHILDREN:
            return "it does not wait for settlement: it waits for the jobs that it called"
        case JobStatus.WAITING if job.waiting_for != SETTLEMENT:
            return f"it does not wait for settlement: it waits for the signal {job.waiting_for}"
        case JobStatus.WAITING | JobStatus.RUNNING | JobStatus.QUEUED:
            return "it does not wait for settlement: a worker is running it, or will soon"
        case _:
            return f"it does not wait for settlement: it is {job.status}"
