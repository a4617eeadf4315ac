"""Which actions an output can have, read from its schema; and the schema of a turn that chooses a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.lint.values import SpentError, Values, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.tool import Tool

_WORK = 50_000  # schemas visited


@dataclass(frozen=True, slots=True)
class Actions:
    """``words`` are the values of ``action``; ``open``: it can be any string; ``absent``: it may be missing.

    Without ``action`` in the output there are no words, ``open`` is False and ``absent`` True.
    """

    words: tuple[str, ...] = ()
    open: bool = False
    absent: bool = True

    @property
    def none(self) -> bool:
        return not self.words and not self.open


def actions_of(schema: Json) -> Actions:
    """The root's ``action``. One that is not a string takes no edge, as if it were missing."""
    values = Values(schema, Work(_WORK).spend)
    words: list[Any] = []
    is_open = absent = False
    try:
        for value in values.of([values.root]):
            absent |= "action" not in value.required or "action" not in value.members
            for action in values.of(value.member("action")) if "action" in value.members else ():
                is_open |= action.listed is None
                words += action.listed or ()
    except SpentError:
        return Actions(open=True, absent=False)
    texts = tuple(dict.fromkeys(word for word in words if isinstance(word, str)))
    mixed = any(not isinstance(word, str) for word in words)
    return Actions(texts, is_open, absent or mixed or not (texts or is_open))


def with_tools(output: JsonObject | None, tools: Sequence[Tool]) -> JsonObject:
    """The output of a turn that may choose a tool: one branch for each tool, in addition to its own branches.

    Tools' schemas contain no references, so only ``$defs`` of the output has to stay at the root.
    """
    branches: list[Any] = []
    definitions: dict[str, Any] = {}
    if output is not None:
        definitions = {name: output[name] for name in ("$defs", "definitions") if name in output}
        own: dict[str, Any] = {name: value for name, value in output.items() if name not in (*definitions, "$schema")}
        only_branches = set(own) <= {"anyOf", "title", "description"}
        branches.extend(own["anyOf"] if only_branches and isinstance(own.get("anyOf"), list) else [own])
    for tool in tools:
        action: dict[str, Any] = {"enum": [tool.name]}
        if tool.description:
            action["description"] = tool.description
        branches.append(
            {
                "type": "object",
                "properties": {"action": action, "arguments": tool.parameters},
                "required": ["action", "arguments"],
                "additionalProperties": False,
            }
        )
    schema: dict[str, Any] = {"anyOf": branches} if len(branches) > 1 else dict(branches[0])
    return schema | definitions
