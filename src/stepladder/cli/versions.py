"""``stepladder workflows``, ``retire`` and ``unretire``, and ``pause --workflow``: switches of published versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.options import AsJson
from stepladder.cli.output import console, escape, hint, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from stepladder.cli.session import Session
    from stepladder.models.records import Receipt
    from stepladder.schemas.published import WorkflowVersion

Name = Annotated[str, typer.Argument(metavar="NAME", help="the workflow's name")]
Version = Annotated[int, typer.Argument(metavar="VERSION", min=1)]


def workflows(as_json: AsJson = False) -> None:
    """List published workflows by name and version."""
    from stepladder.cli.session import in_session

    found = in_session(load_settings(), lambda session: session.reads.workflows())
    _print(found, as_json=as_json)
    if not found and not as_json:
        hint("nothing is published yet: stepladder publish DOC")


def retire(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Accept no new jobs of a version. Existing jobs continue, and stay on it."""
    from stepladder.models import versions

    switch(name, version, lambda session: versions.retire(session.store, name, version), as_json=as_json)


def unretire(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Accept new jobs of a version again."""
    from stepladder.models import versions

    def change(session: Session) -> Awaitable[Receipt]:
        return versions.retire(session.store, name, version, retired=False)

    switch(name, version, change, as_json=as_json)


def switch(name: str, version: int | None, change: Callable[[Session], Awaitable[Receipt]], *, as_json: bool) -> None:
    """Change a workflow, or one version of it, and print the versions that were meant.

    Raises ``BadInputError`` if there is no such version.
    """
    from stepladder.cli.session import in_session

    async def changed(session: Session) -> tuple[Receipt, tuple[WorkflowVersion, ...]]:
        return await change(session), await session.reads.workflows()

    receipt, published = in_session(load_settings(), changed)
    versions = [one for one in published if one.name == name]
    if receipt.value == "unknown":
        message = f"no workflow {name} is published"
        if version is not None and versions:
            listed = ", ".join(str(one.version) for one in versions[-20:])
            message = f"workflow {name} has no version {version}; it has {listed}"
        raise BadInputError(message, remedy="list published workflows: stepladder workflows")
    _print([one for one in versions if version in (None, one.version)], as_json=as_json)
    if receipt.value == "duplicate" and not as_json:
        hint("nothing changed")


def _print(versions: Sequence[WorkflowVersion], *, as_json: bool) -> None:
    if as_json:
        print_json({"workflows": versions})
        return
    for one in versions:
        retired = ", [yellow]retired[/]" if one.retired else ""
        paused = ""
        if one.paused_at is not None:
            since = f"since {one.paused_at:%Y-%m-%d %H:%M:%S} UTC"
            paused = f", [yellow]paused[/] by {escape(one.paused_by or '')} {since}"
        console().print(f"{one.name} {one.version}: published {one.created_at:%Y-%m-%d}{retired}{paused}")
