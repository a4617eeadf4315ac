"""The application, assembled from its services. Nothing in it is global."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from stepladder.api import (
    bulks,
    control,
    diffs,
    experiments,
    history,
    jobs,
    problems,
    replays,
    retention,
    settlement,
    stats,
    system,
    workflows,
)
from stepladder.api.access import Access
from stepladder.api.dependencies import Services
from stepladder.api.metrics import Metrics
from stepladder.api.middleware import Middleware
from stepladder.api.watch import Watch
from stepladder.queries.counts import Tallies
from stepladder.runner.machines import Machines
from stepladder.services.replays import Replays
from stepladder.services.submission import Submissions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from stepladder.api.access import ApiKey
    from stepladder.api.dependencies import Identify
    from stepladder.models.database import Database
    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.schemas.tool import Kit
    from stepladder.services.submission import Notify

DESCRIPTION = """\
Durable multi-turn agents as explicit state machines: publish a workflow, submit jobs, and follow them.

Every error is a problem (RFC 9457). With API keys, send `Authorization: Bearer KEY`; without them the API answers
only its own machine.
"""
ROUTES = (
    workflows, jobs, history, control, settlement, retention, replays, bulks, diffs, experiments, stats, system
)  # fmt: skip


class Application:
    """What a server serves. ``end_streams`` wakes all who wait for a job, so that the server can end."""

    def __init__(self, app: ASGIApp, access: Access, watch: Watch) -> None:
        self.access = access
        self._app = app
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def end_streams(self) -> None:
        self._watch.close()


def create_app(
    database: Database,
    store: Store,
    reads: Reads,
    kit: Kit,
    notify: Notify,
    *,
    identify: Identify | None = None,
    keys: Sequence[ApiKey] = (),
    dashboard: Callable[[Services], ASGIApp] | None = None,
    heartbeat_s: float = 15.0,
) -> Application:
    """The API as an ASGI application over an opened ``database``, which the caller closes after it.

    ``notify`` announces due jobs after they are committed, and returns at once. ``identify`` asks the engine for its
    identity, where there is one. Without ``keys`` the API answers only this machine. ``dashboard`` serves every path
    that is not the API's, and handles its own logins. A stream of events sends a comment every ``heartbeat_s`` seconds.
    """
    access = Access(keys)
    metrics = Metrics(Tallies(database))
    watch = Watch(reads)
    machines = Machines(store, kit)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        watch.close()

    app = FastAPI(
        title="Stepladder",
        version="1",
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    services = Services(
        store=store,
        reads=reads,
        machines=machines,
        notify=notify,
        identify=identify,
        access=access,
        watch=watch,
        metrics=metrics,
        submissions=Submissions(store, reads, machines, notify),
        replays=Replays(database, store, machines, notify),
        heartbeat_s=heartbeat_s,
    )
    app.state.services = services
    for module in ROUTES:
        app.include_router(module.router)
    problems.install(app)
    pages = None if dashboard is None else dashboard(services)
    return Application(Middleware(app, access, metrics, pages), access, watch)
