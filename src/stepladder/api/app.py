"""The application, put together from its parts. Nothing in it is global."""

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
from stepladder.api.metrics import Metrics
from stepladder.api.parts import Parts
from stepladder.api.shell import Shell
from stepladder.api.watch import Watch
from stepladder.models.counts import Tallies
from stepladder.runner.machines import Machines
from stepladder.services.replays import Replays

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from stepladder.api.access import ApiKey
    from stepladder.api.parts import Identify, Notify
    from stepladder.models.database import Database
    from stepladder.models.reads import Reads
    from stepladder.models.store import Store
    from stepladder.schemas.tool import Kit

DESCRIPTION = """\
Durable multi-turn agents as explicit state machines: publish a workflow, submit jobs, watch what becomes of them.

Every error is a problem (RFC 9457). With API keys, send `Authorization: Bearer KEY`; without them the API answers on
its own machine alone.
"""


class Application:
    """What a server serves. ``end_streams`` sends on their way all who wait for a job, so that the server can end."""

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
    dashboard: Callable[[Parts], ASGIApp] | None = None,
    heartbeat_s: float = 15.0,
) -> Application:
    """The API as an ASGI application over an opened ``database``, which the caller closes after it.

    ``notify`` is told of jobs that are due, after they are committed. ``identify`` asks the engine who it is, where
    there is one. Without ``keys`` only this machine is answered. ``dashboard`` takes every path that is not the API's,
    and looks after its own logins. A stream of events shows a sign of life every ``heartbeat_s`` seconds.
    """
    access = Access(keys)
    metrics = Metrics(Tallies(database))
    watch = Watch(reads)

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
    machines = Machines(store, kit)
    replays_of = Replays(database, store, machines)
    parts = Parts(store, reads, machines, notify, identify, access, watch, metrics, replays_of, heartbeat_s=heartbeat_s)
    app.state.parts = parts
    rooms = (
        workflows, jobs, history, control, settlement, retention, replays, bulks, diffs, experiments, stats,
        system,
    )  # fmt: skip
    for room in rooms:
        app.include_router(room.router)
    problems.install(app)
    pages = None if dashboard is None else dashboard(parts)
    return Application(Shell(app, access, metrics, pages), access, watch)
