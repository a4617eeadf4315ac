"""From the text of a document to a machine, or to all its errors at once."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stepladder.lint.compile import UNPINNED, Compiled, compile_workflow
from stepladder.schemas.document import Workflow
from stepladder.schemas.pointer import pointer_steps
from stepladder.schemas.source import Source, read
from stepladder.workflows.load import Loaded, load_document, placed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepladder.lint.schemas import Audit
    from stepladder.schemas.finding import Finding
    from stepladder.schemas.tool import Kit

FOLLOWS_ONLY = ("unreachable_state", "no_end", "too_early")
"""Codes that may only be a consequence of a part that could not be read."""


def check_document(text: str, kit: Kit, audit: Audit = UNPINNED) -> Compiled:
    """Read and compile ``text``, YAML or JSON. The findings are in the order of the text and have lines.

    If parts have the wrong shape, the rest is checked without them, so that all problems show at once.
    """
    loaded = load_document(text)
    if isinstance(loaded, Loaded):
        compiled = compile_workflow(loaded.document, kit, audit)
        return Compiled(compiled.machine, placed(compiled.findings, loaded.source))
    source = read(text)
    if not isinstance(source, Source) or not isinstance(source.value, dict):
        return Compiled(None, loaded)
    rest, missing = _without(loaded, source.value)
    beside = () if rest is None else compile_workflow(rest, kit, audit).findings
    further = [finding for finding in beside if not _comes_of(finding, missing)]
    return Compiled(None, placed((*loaded, *further), source))


def _without(findings: Iterable[Finding], value: dict[str, Any]) -> tuple[Workflow | None, set[str]]:
    """The document without the parts that have the wrong shape, if possible, and the states that were replaced."""
    rest = copy.deepcopy(value)
    missing: set[str] = set()
    for finding in findings:
        match pointer_steps(finding.pointer):
            case ["states", name, *_] if name in (rest.get("states") or {}):
                rest["states"][name] = {"end": "succeeded"}  # edges may lead to it, and it has nothing to check
                missing.add(name)
            case [field, *_] if field in ("name", "version", "start", "states"):
                rest |= {"name": "unread"} if field == "name" else {}
                rest |= {"version": 1} if field == "version" else {}
            case [field, *_]:
                rest.pop(field, None)
            case _:
                rest = {"name": "unread", "version": 1, **rest}
    try:
        return Workflow.model_validate(rest), missing
    except ValidationError:
        return None, missing


def _comes_of(finding: Finding, missing: set[str]) -> bool:
    """Whether a finding may be a consequence of a replaced state."""
    if not missing:
        return False
    named = any(f"`{name}`" in finding.message or f".{name}`" in finding.message for name in missing)
    inside = pointer_steps(finding.pointer)[1:2]
    return named or finding.code in FOLLOWS_ONLY or (bool(inside) and inside[0] in missing)
