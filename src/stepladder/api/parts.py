"""What the routes work with, and how they get at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

from fastapi import Depends, Request

from stepladder.api.access import Principal, Scope
from stepladder.api.problems import Mistake, ProblemError, invalid, not_found
from stepladder.schemas.finding import BadDocumentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from uuid import UUID

    from stepladder.api.access import Access
    from stepladder.api.metrics import Metrics
    from stepladder.api.watch import Watch
    from stepladder.engine.identity import Identity
    from stepladder.models.reads import Reads
    from stepladder.models.store import Store
    from stepladder.runner.machines import Machines
    from stepladder.schemas.responses import Job
    from stepladder.services.replays import Replays
    from stepladder.workflows.machine import Machine

Notify: TypeAlias = "Callable[[Sequence[UUID]], Awaitable[object]]"
"""Tells a worker that jobs are due. It is called after they are committed; what it loses, the sweep finds."""

Identify: TypeAlias = "Callable[[], Awaitable[Identity]]"
"""Asks the engine who it is. Raises ``UnreachableError`` where it does not answer."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a route may use. One for each application, made by ``create_app``."""

    store: Store
    reads: Reads
    machines: Machines
    notify: Notify
    identify: Identify | None
    access: Access
    watch: Watch
    metrics: Metrics
    replays: Replays
    heartbeat_s: float = field(default=15.0)

    async def job(self, job_id: UUID) -> Job:
        """Raises ``ProblemError`` where there is none."""
        found = await self.reads.job(job_id)
        if found is None:
            raise not_found(f"job {job_id}", "list the jobs with GET /v1/jobs")
        return found

    async def machine(self, name: str, version: int, variant: str | None = None) -> Machine:
        """The machine of a published version, or of a variant. A 503 where this process lacks what it names."""
        try:
            return await self.machines.get(name, version, variant)
        except BadDocumentError as error:
            raise lacking(f"workflow {name} {version}", error) from None

    async def ring_job(self, job: Job) -> None:
        await self.notify([job.id])


def lacking(what: str, error: BadDocumentError) -> ProblemError:
    """This process lacks the tools or rules that a document names."""
    mistakes = [Mistake(finding.message, parameter=finding.pointer) for finding in error.findings]
    remedy = "start it with the STEPLADDER_APP that registers those tools and rules"
    detail = f"this server lacks what {what} names"
    return ProblemError(503, "missing-tools", detail, mistakes=mistakes, remedy=remedy)


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def principal_of(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


class Needs:
    """A dependency: the principal must have a scope, and every parameter in the query must be known."""

    def __init__(self, scope: Scope, *, also: str | None = None) -> None:
        self._scope = scope
        self._also = also

    def __call__(self, request: Request) -> Principal:
        principal = principal_of(request)
        if not principal.may(self._scope):
            detail = f"the key {principal.name!r} lacks the scope {self._scope}"
            remedy = f"use a key with {self._scope}, or with admin"
            raise ProblemError(403, "forbidden", detail, remedy=remedy)
        known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
        foreign = [
            name
            for name in dict.fromkeys(request.query_params)
            if name not in known and not (self._also and name.startswith(self._also))
        ]
        if foreign:
            listed = ", ".join(sorted(known | ({f"{self._also}KEY"} if self._also else set()))) or "none"
            mistakes = [Mistake(f"this route has no parameter `{name}`", parameter=name) for name in foreign]
            raise invalid("the query has unknown parameters", mistakes, f"what it takes: {listed}")
        return principal


Wired: TypeAlias = Annotated[Parts, Depends(parts_of)]
Reader: TypeAlias = Annotated[Principal, Depends(Needs(Scope.READ))]
Writer: TypeAlias = Annotated[Principal, Depends(Needs(Scope.WRITE))]
Publisher: TypeAlias = Annotated[Principal, Depends(Needs(Scope.PUBLISH))]
Signaller: TypeAlias = Annotated[Principal, Depends(Needs(Scope.SIGNAL))]
Settler: TypeAlias = Annotated[Principal, Depends(Needs(Scope.SETTLE))]
Lister: TypeAlias = Annotated[Principal, Depends(Needs(Scope.READ, also="metadata."))]
