"""The pages of published workflows, with the buttons to pause and retire them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from stepladder.api.access import Scope
from stepladder.api.problems import not_found
from stepladder.dashboard.context import context_of, require, session_of
from stepladder.dashboard.graph import graph_of
from stepladder.dashboard.rendering import page
from stepladder.lint.compile import compile_workflow
from stepladder.models import versions
from stepladder.models.records import Receipt
from stepladder.schemas.document import Workflow

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STATS_PERIOD = timedelta(hours=24)


async def list_workflows(request: Request) -> Response:
    published = await context_of(request).services.reads.workflows()
    names = dict.fromkeys(version.name for version in published)
    by_name = {name: [version for version in reversed(published) if version.name == name] for name in names}
    return page(request, "workflows.html", workflows=by_name)


async def show_version(request: Request) -> Response:
    """One version: its state machine, its findings by today's checks, and its rates."""
    context, name, version = context_of(request), request.path_params["name"].replace("\0", ""), _version(request)
    row = None if version is None else await context.services.store.workflow(name, version)
    if row is None:
        raise not_found(f"workflow {name[:100]} {version}", "go back to the workflows")
    kit = context.services.machines.kit
    compiled = await context.checks.get(
        row.hash, lambda: asyncio.to_thread(compile_workflow, Workflow.model_validate(row.document), kit)
    )
    published = [one for one in await context.services.reads.workflows() if one.name == name]
    now = await context.services.store.database.now()
    return page(
        request,
        "workflow.html",
        row=row,
        version=next(one for one in published if one.version == row.version),
        versions=published[::-1],
        findings=compiled.findings,
        graph=None if compiled.machine is None else graph_of(compiled.machine),
        stats=next(iter(await context.services.reads.stats(now - STATS_PERIOD, name)), None),
    )


async def pause(request: Request) -> Response:
    """Pauses the version that the path names, or all of the workflow."""
    name, version, by = _target(request)
    return _done(await versions.pause(context_of(request).services.store, name, version, by), name)


async def unpause(request: Request) -> Response:
    name, version, by = _target(request)
    return _done(await versions.unpause(context_of(request).services.store, name, version, by), name)


async def retire(request: Request) -> Response:
    name, version, _ = _target(request)
    return _done(await versions.retire(context_of(request).services.store, name, version or 0), name)


async def unretire(request: Request) -> Response:
    name, version, _ = _target(request)
    return _done(await versions.retire(context_of(request).services.store, name, version or 0, retired=False), name)


def _target(request: Request) -> tuple[str, int | None, str]:
    """The name and version in the path, and the principal, who must have the scope."""
    require(request, Scope.PUBLISH)
    return request.path_params["name"].replace("\0", ""), _version(request), session_of(request).principal.name


def _version(request: Request) -> int | None:
    version: int | None = request.path_params.get("version")
    if version is not None and version >= 2**31:
        raise not_found(f"version {version}", "go back to the workflows")
    return version


def _done(receipt: Receipt, name: str) -> Response:
    if receipt is Receipt.UNKNOWN:
        raise not_found(f"such version of workflow {name[:100]}", "go back to the workflows")
    return RedirectResponse("/workflows", 303)
