"""Changes to a document by paths: ``states.bill.ask``, ``states.bill.rules.0.check``, ``sampling.temperature``."""

from __future__ import annotations

import copy
import difflib
import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stepladder.lint.compile import Compiled, compile_workflow
from stepladder.schemas.document import Workflow
from stepladder.schemas.finding import Finding
from stepladder.schemas.pointer import pointer, pointer_steps
from stepladder.workflows.load import mistakes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit

FIXED = ("name", "version")
VERSION = "version"
"""A path that chooses another document instead of changing this one."""

_DOT = re.compile(r"(?<!\\)\.")


def steps_of(path: str) -> list[str]:
    """The steps of a dotted path, where ``\\.`` is a dot in a name; or of a JSON pointer, which begins with ``/``."""
    if path.startswith("/"):
        return pointer_steps(path)
    return [step.replace("\\.", ".") for step in _DOT.split(path)]


def recompiled(definition: Json, changes: Mapping[str, Json], kit: Kit) -> Compiled:
    """The machine of a definition with ``changes`` by path, or all its errors. None removes a field."""
    document = copy.deepcopy(definition)
    findings = [found for path, value in changes.items() if (found := _set(document, path, value)) is not None]
    if findings:
        return Compiled(None, tuple(findings))
    try:
        return compile_workflow(Workflow.model_validate(document), kit)
    except ValidationError as error:
        return Compiled(None, tuple(mistakes(error, document)))


def _set(document: Any, path: str, value: Json) -> Finding | None:
    """Change the document in place, or return why it cannot be changed."""
    *before, last = steps = steps_of(path)
    if not all(steps) or steps[0] in FIXED:
        why = "names no place in a document" if steps[0] not in FIXED else "cannot be changed"
        return Finding("bad_path", "", f"`{path}` {why}", "write a path such as states.STATE.ask or sampling.seed")
    here = document
    for depth, step in enumerate(before):
        if isinstance(here, dict) and step not in here:
            if steps[0] == "states" and depth == 1:
                close = difflib.get_close_matches(step, here, n=1)
                remedy = f"did you mean `{close[0]}`?" if close else f"the states are {', '.join(list(here)[:20])}"
                return Finding("bad_path", "/states", f"`{path}`: there is no state `{step}`", remedy)
            here[step] = {}
        at = _index(step) if isinstance(here, list) else step
        if not isinstance(here, dict | list) or at is None or (isinstance(at, int) and at >= len(here)):
            return _no_such_place(path, steps[: depth + 1], here)
        here = here[int(at)] if isinstance(here, list) else here[at]
    if isinstance(here, dict):
        if value is None:
            here.pop(last, None)
        else:
            here[last] = value
        return None
    at = _index(last) if isinstance(here, list) else None
    if at is None or at > len(here) or (at == len(here) and value is None):
        return _no_such_place(path, steps, here)
    here[at : at + 1] = [] if value is None else [value]
    return None


def _index(step: str) -> int | None:
    return int(step) if step.isascii() and step.isdigit() and len(step) < 6 else None


def _no_such_place(path: str, steps: Sequence[str], here: Any) -> Finding:
    if isinstance(here, list):
        remedy = f"it has {len(here)} items, counted from 0"
        return Finding("bad_path", pointer(steps[:-1]), f"`{path}`: a list has no item `{steps[-1]}`", remedy)
    kind = "a string" if isinstance(here, str) else "a value"
    remedy = "change the value itself, or name a map or a list"
    return Finding("bad_path", pointer(steps[:-1]), f"`{path}`: {kind} has no field `{steps[-1]}`", remedy)
