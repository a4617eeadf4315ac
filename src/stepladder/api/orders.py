"""What is asked for when a job is submitted, alone or with others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from stepladder.api.problems import Mistake, ProblemError, invalid, mistakes_of
from stepladder.models.records import KeyTaken, NewJob, Retired, SubmissionKey
from stepladder.schemas.canonical import content_hash
from stepladder.services.orders import Order, prepare
from stepladder.services.submission import retired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.api.access import Principal
    from stepladder.api.parts import Parts
    from stepladder.models.records import Submitted
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.machine import Machine

MOST_JOBS = 1000
LONGEST_KEY = 255
LONGEST_DEADLINE_S = 10 * 365 * 86400.0

LONGEST_TEXT = 1000


def _word(value: Any) -> Any:
    if not isinstance(value, str | bool | int | float):
        raise ValueError("it must be a text, a number, true or false")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"it must have at most {LONGEST_TEXT} characters, not {len(value)}")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("the character \\u0000 cannot be stored here")
    return value


Word: TypeAlias = Annotated[Any, BeforeValidator(_word), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[^\x00]+$", max_length=100)]


class JobOrder(BaseModel):
    """A job to be done. `version` is the highest that is not retired unless it is given."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"workflow": "usage-bill", "input": {"team": "search"}, "metadata": {"order": "4711"}}
        },
    )

    workflow: str = Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)
    version: int | None = Field(None, ge=1, le=2**31 - 1)
    input: Any
    priority: int = Field(0, ge=-1000, le=1000, description="a higher one is done first")
    deadline_s: float | None = Field(None, ge=0, le=LONGEST_DEADLINE_S, description="wins over the workflow's")
    token_budget: int | None = Field(None, ge=0, le=2**53 - 1, description="wins over the workflow's")
    metadata: dict[Name, Word] = Field(
        default_factory=dict, max_length=64, description="your own words, by which jobs are found again"
    )

    def order(self) -> Order:
        return Order(
            self.workflow,
            self.input,
            self.version,
            self.priority,
            self.deadline_s,
            self.token_budget,
            self.metadata,
        )


class Batch(BaseModel):
    """Jobs that are written together, or not at all."""

    model_config = ConfigDict(extra="forbid", strict=True)

    jobs: list[JobOrder] = Field(min_length=1, max_length=MOST_JOBS)


def submission_key(principal: Principal, key: str | None, route: str, body: Json) -> SubmissionKey | None:
    """What the header ``Idempotency-Key`` names."""
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY:
        mistakes = [Mistake(f"it has 1 to {LONGEST_KEY} characters", parameter="Idempotency-Key")]
        raise invalid("the idempotency key cannot be used", mistakes)
    return SubmissionKey(principal.name, key, content_hash([route, body]))


async def known(parts: Parts, key: SubmissionKey | None) -> Submitted | None:
    """What was submitted under the key before. Raises ``ProblemError`` if that was something else."""
    return None if key is None else unless_taken(await parts.store.submitted(key))


async def submit(
    parts: Parts, principal: Principal, orders: Sequence[tuple[str, Order]], key: SubmissionKey | None
) -> Submitted | None:
    """Writes the jobs of all orders, or raises a ``ProblemError`` with every mistake in any of them.

    Each order comes with the JSON pointer at which it stands in the body.
    """
    machines: dict[tuple[str, int | None], Machine | Mistake] = {}
    mistakes: list[Mistake] = []
    jobs: list[NewJob] = []
    now = datetime.now(UTC)
    for at, order in orders:
        wanted = (order.workflow, order.version)
        if wanted not in machines:
            machines[wanted] = await _machine(parts, order)
        machine = machines[wanted]
        if isinstance(machine, Mistake):
            mistakes.append(Mistake(machine.reason, at + machine.pointer))
            continue
        prepared = prepare(machine, order, now, principal)
        if isinstance(prepared, NewJob):
            jobs.append(prepared)
        else:
            mistakes += mistakes_of(prepared, f"{at}/input")
    if mistakes:
        raise invalid(_summary(mistakes, orders), mistakes, "mend it; nothing was stored")
    found = await parts.store.submit_many(jobs, key)
    if isinstance(found, Retired):  # at this moment; who named no version gets another one
        return await submit(parts, principal, orders, key)
    written = unless_taken(found)
    if written is not None and not written.again:
        await parts.notify([new.job.id for new in jobs])
    return written


def unless_taken(found: Submitted | KeyTaken | None) -> Submitted | None:
    """What was written, or a problem where the key stands for something else."""
    if isinstance(found, KeyTaken):
        mistakes = [Mistake("another body was sent under this key", parameter="Idempotency-Key")]
        detail = "the idempotency key is taken by a submission with another body"
        remedy = "send the same body again, or use a new key; nothing was stored"
        raise ProblemError(422, "idempotency-key-reused", detail, mistakes=mistakes, remedy=remedy)
    return found


async def _machine(parts: Parts, order: Order) -> Machine | Mistake:
    row = await parts.store.workflow(order.workflow, order.version)
    if row is not None and row.retired:
        message, remedy = retired(row.name, row.version, await parts.store.workflow(row.name))
        return Mistake(f"{message}: {remedy}", "/version")
    if row is not None:
        return await parts.machine(row.name, row.version)
    versions = [version for version in await parts.reads.workflows() if version.name == order.workflow]
    if not versions:
        return Mistake(f"there is no workflow {order.workflow}", "/workflow")
    if order.version is None:
        message = f"every version of workflow {order.workflow} is retired: publish a new one, or unretire one"
        return Mistake(message, "/workflow")
    listed = ", ".join(str(version.version) for version in versions[-20:])
    return Mistake(f"workflow {order.workflow} has no version {order.version}; it has {listed}", "/version")


def _summary(mistakes: Sequence[Mistake], orders: Sequence[tuple[str, Order]]) -> str:
    if len(orders) == 1 and orders[0][0] == "":
        return mistakes[0].reason if mistakes[0].pointer in ("/workflow", "/version") else _misfit(orders[0][1])
    count = len({mistake.pointer.split("/")[2] for mistake in mistakes})
    return f"{count} of {len(orders)} jobs cannot be done as they are asked for"


def _misfit(order: Order) -> str:
    version = "" if order.version is None else f" {order.version}"
    return f"the input does not fit workflow {order.workflow}{version}"
