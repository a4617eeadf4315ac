"""``stepladder workflows``, ``retire`` and ``unretire``, and ``pause --workflow``: switches on published versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.output import console, escape, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from stepladder.cli.session import Session
    from stepladder.models.records import Receipt
    from stepladder.schemas.published import WorkflowVersion

Name = Annotated[str, typer.Argument(metavar="NAME", help="the workflow's name")]
Version = Annotated[int, typer.Argument(metavar="VERSION", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="the versions as they stand then, as JSON")]


def workflows(as_json: Annotated[bool, typer.Option("--json", help="as one JSON document")] = False) -> None:
    """List what is published, by name and version."""
    from stepladder.cli.session import in_session

    found = in_session(load_settings(), lambda session: session.reads.workflows())
    if as_json:
        _say_json(found)
        return
    _say(found)
    if not found:
        console(error=True).print("nothing is published yet: stepladder publish DOC", style="dim")


def retire(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Take no new jobs of a version. Those that there are go on, and stay on it."""
    from stepladder.models import versions

    switch(name, version, lambda session: versions.retire(session.store, name, version), as_json=as_json)


def unretire(name: Name, version: Version, as_json: AsJson = False) -> None:
    """Take new jobs of a version again."""
    from stepladder.models import versions

    switch(name, version, lambda session: versions.retire(session.store, name, version, retired=False), as_json=as_json)


def pause(name: str, version: int | None, *, as_json: bool) -> None:
    """Lets nobody go on with the jobs of a workflow, or of one version."""
    from stepladder.cli.session import PRINCIPAL
    from stepladder.models import versions

    switch(name, version, lambda session: versions.pause(session.store, name, version, PRINCIPAL), as_json=as_json)


def unpause(name: str, version: int | None, *, as_json: bool) -> None:
    from stepladder.cli.session import PRINCIPAL
    from stepladder.models import versions

    switch(name, version, lambda session: versions.unpause(session.store, name, version, PRINCIPAL), as_json=as_json)


def switch(name: str, version: int | None, turn: Callable[[Session], Awaitable[Receipt]], *, as_json: bool) -> None:
    """Turns a switch, and tells how the versions that were meant stand then."""
    from stepladder.cli.session import in_session

    async def turned(session: Session) -> tuple[Receipt, tuple[WorkflowVersion, ...]]:
        return await turn(session), await session.reads.workflows()

    receipt, published = in_session(load_settings(), turned)
    if receipt.value == "unknown":
        raise BadInputError(_missing(name, version, published), remedy="see what is published: stepladder workflows")
    meant = [one for one in published if one.name == name and version in (None, one.version)]
    if as_json:
        _say_json(meant)
        return
    _say(meant)
    if receipt.value == "duplicate":
        console(error=True).print("it was so already", style="dim")


def _missing(name: str, version: int | None, published: Sequence[WorkflowVersion]) -> str:
    versions = [str(one.version) for one in published if one.name == name]
    if version is None or not versions:
        return f"no workflow {name} is published"
    return f"workflow {name} has no version {version}; it has {', '.join(versions[-20:])}"


def _say(versions: Sequence[WorkflowVersion]) -> None:
    for one in versions:
        paused = "" if one.paused_at is None else f", [yellow]paused[/] by {escape(one.paused_by or '')}"
        since = "" if one.paused_at is None else f" since {one.paused_at:%Y-%m-%d %H:%M:%S} UTC"
        retired = ", [yellow]retired[/]" if one.retired else ""
        console().print(f"{one.name} {one.version}: published {one.created_at:%Y-%m-%d}{retired}{paused}{since}")


def _say_json(versions: Sequence[WorkflowVersion]) -> None:
    print_json({"workflows": versions})
