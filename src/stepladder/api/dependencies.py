"""What the routes depend on: the services, and a principal who has the scope that the route needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

from fastapi import Depends, Request

from stepladder.api.access import Principal, Scope
from stepladder.api.problems import Mistake, ProblemError, invalid, not_found

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from stepladder.api.access import Access
    from stepladder.api.metrics import Metrics
    from stepladder.api.watch import Watch
    from stepladder.engine.identity import Identity
    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.runner.machines import Machines
    from stepladder.schemas.responses import Job
    from stepladder.services.replays import Replays
    from stepladder.services.submission import Notify, Submissions

Identify: TypeAlias = "Callable[[], Awaitable[Identity]]"
"""Asks the engine for its identity. Raises ``UnreachableError`` if it does not answer."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that a route may use. One for each application, made by ``create_app``."""

    store: Store
    reads: Reads
    machines: Machines
    notify: Notify
    identify: Identify | None
    access: Access
    watch: Watch
    metrics: Metrics
    submissions: Submissions
    replays: Replays
    heartbeat_s: float = field(default=15.0)

    async def job(self, job_id: UUID) -> Job:
        """Raises ``ProblemError`` if there is none."""
        found = await self.reads.job(job_id)
        if found is None:
            raise not_found(f"job {job_id}", "list the jobs with GET /v1/jobs")
        return found


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def principal_of(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


class Requires:
    """A dependency: the principal must have a scope, and every query parameter must be known."""

    def __init__(self, scope: Scope, *, prefix: str | None = None) -> None:
        self._scope = scope
        self._prefix = prefix

    def __call__(self, request: Request) -> Principal:
        principal = principal_of(request)
        if not principal.may(self._scope):
            detail = f"the key {principal.name!r} lacks the scope {self._scope}"
            remedy = f"use a key with {self._scope}, or with admin"
            raise ProblemError(403, "forbidden", detail, remedy=remedy)
        known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
        unknown = [
            name
            for name in dict.fromkeys(request.query_params)
            if name not in known and not (self._prefix and name.startswith(self._prefix))
        ]
        if unknown:
            listed = ", ".join(sorted(known | ({f"{self._prefix}KEY"} if self._prefix else set()))) or "none"
            mistakes = [Mistake(f"this route has no parameter `{name}`", parameter=name) for name in unknown]
            raise invalid("the query has unknown parameters", mistakes, f"known parameters: {listed}")
        return principal


ServicesDep: TypeAlias = Annotated[Services, Depends(services_of)]
Reader: TypeAlias = Annotated[Principal, Depends(Requires(Scope.READ))]
Writer: TypeAlias = Annotated[Principal, Depends(Requires(Scope.WRITE))]
Publisher: TypeAlias = Annotated[Principal, Depends(Requires(Scope.PUBLISH))]
Signaller: TypeAlias = Annotated[Principal, Depends(Requires(Scope.SIGNAL))]
Settler: TypeAlias = Annotated[Principal, Depends(Requires(Scope.SETTLE))]
Lister: TypeAlias = Annotated[Principal, Depends(Requires(Scope.READ, prefix="metadata."))]
