"""The pages of what is published, and their switches: pause, and retire."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import not_found
from stepladder.dashboard.desk import demand, desk_of, guest_of
from stepladder.dashboard.graph import Way, graph_of
from stepladder.dashboard.render import page
from stepladder.lint.compile import compile_workflow
from stepladder.models import versions
from stepladder.models.records import Receipt
from stepladder.schemas.document import Workflow

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STATS_OF = timedelta(hours=24)


async def list_workflows(request: Request) -> Response:
    published = await desk_of(request).parts.reads.workflows()
    names = dict.fromkeys(version.name for version in published)
    by_name = {name: [version for version in reversed(published) if version.name == name] for name in names}
    return page(request, "workflows.html", workflows=by_name)


async def show_version(request: Request) -> Response:
    """One version: its machine as a graph, what the checks say of it today, and how it does."""
    desk, name, version = desk_of(request), request.path_params["name"].replace("\0", ""), _version(request)
    row = None if version is None else await desk.parts.store.workflow(name, version)
    if row is None:
        raise not_found(f"workflow {name[:100]} {version}", "go back to the workflows")
    kit = desk.parts.machines.kit
    compiled = await desk.checks.read(
        row.hash, lambda: asyncio.to_thread(compile_workflow, Workflow.model_validate(row.document), kit)
    )
    published = [one for one in await desk.parts.reads.workflows() if one.name == name]
    return page(
        request,
        "workflow.html",
        row=row,
        version=next(one for one in published if one.version == row.version),
        versions=published[::-1],
        findings=compiled.findings,
        graph=None if compiled.machine is None else graph_of(compiled.machine, Way()),
        stats=next(iter(await desk.parts.reads.stats(datetime.now(UTC) - STATS_OF, name)), None),
    )


async def pause(request: Request) -> Response:
    """Of a whole workflow, or of the version that the path names."""
    name, version, by = _meant(request)
    return _done(await versions.pause(desk_of(request).parts.store, name, version, by), name)


async def unpause(request: Request) -> Response:
    name, version, by = _meant(request)
    return _done(await versions.unpause(desk_of(request).parts.store, name, version, by), name)


async def retire(request: Request) -> Response:
    name, version, _ = _meant(request)
    return _done(await versions.retire(desk_of(request).parts.store, name, version or 0), name)


async def unretire(request: Request) -> Response:
    name, version, _ = _meant(request)
    return _done(await versions.retire(desk_of(request).parts.store, name, version or 0, retired=False), name)


def _meant(request: Request) -> tuple[str, int | None, str]:
    """The name and the version of the path, and who asks; they need the scope for it."""
    demand(request, Scope.PUBLISH)
    return request.path_params["name"].replace("\0", ""), _version(request), guest_of(request).principal.name


def _version(request: Request) -> int | None:
    version: int | None = request.path_params.get("version")
    if version is not None and version >= 2**31:
        raise not_found(f"version {version}", "go back to the workflows")
    return version


def _done(receipt: Receipt, name: str) -> Response:
    if receipt is Receipt.UNKNOWN:
        raise not_found(f"such version of workflow {name[:100]}", "go back to the workflows")
    return RedirectResponse("/workflows", 303)
