"""Which actions an output can have, read from its schema; and the schema of a turn that chooses a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from stepladder.schemas.pointer import resolve, value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.schemas.tool import Tool


DEEPEST = 200  # references and branches inside each other, of Python's 1,000 frames; people nest three or four


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


def actions_of(schema: Any) -> Actions:
    """Reads the root's ``action`` through ``$ref``, ``allOf``, ``anyOf`` and ``oneOf``."""
    return _read(schema, schema, {}, 0)


def _read(schema: Any, root: Any, known: dict[str, Actions], depth: int) -> Actions:
    """``known`` holds the references already read, so that each is read only once."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return Actions()
    found = _own(schema, root)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference not in known:
            known[reference] = Actions()  # what a circular reference finds
            known[reference] = _read(referenced(reference, root), root, known, depth + 1)
        found = _both(found, known[reference])
    for branch in schema.get("allOf") or ():
        found = _both(found, _read(branch, root, known, depth + 1))
    for word in ("anyOf", "oneOf"):
        branches = [_read(branch, root, known, depth + 1) for branch in schema.get(word) or ()]
        if branches:
            words = tuple(dict.fromkeys(word for branch in branches for word in branch.words))
            either = Actions(words, any(b.open for b in branches), any(b.absent for b in branches))
            found = _both(found, either)
    return found


def _own(schema: Mapping[str, Any], root: Any) -> Actions:
    properties = schema.get("properties")
    action = properties.get("action") if isinstance(properties, Mapping) else None
    absent = "action" not in (schema.get("required") or ())
    if action is None:
        return Actions(absent=absent)
    action = followed(action, root)
    if isinstance(action, Mapping) and "const" in action:
        return _listed([action["const"]], absent=absent)
    if isinstance(action, Mapping) and isinstance(action.get("enum"), list):
        return _listed(action["enum"], absent=absent)
    return Actions(open=True, absent=absent)


def _listed(values: Sequence[Any], *, absent: bool) -> Actions:
    """An action that is not a string takes no edge, as if it were missing."""
    words = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    return Actions(words, absent=absent or any(not isinstance(value, str) for value in values))


def _both(one: Actions, other: Actions) -> Actions:
    """What holds when two subschemas hold at once."""
    absent = one.absent and other.absent
    if one.none or other.none:
        named = other if one.none else one
        return Actions(named.words, named.open, absent)
    if one.open or other.open:
        return Actions(one.words or other.words, one.open and other.open, absent)
    return Actions(tuple(word for word in one.words if word in other.words), absent=absent)


def followed(schema: Any, root: Any) -> Any:
    """The schema merged with its ``$ref``'s target; keywords next to the ``$ref`` override the target's."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str) and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        target = referenced(schema["$ref"], root)
        beside = {word: value for word, value in schema.items() if word != "$ref"}
        schema = {**target, **beside} if isinstance(target, Mapping) else target
    return schema


def referenced(reference: str, root: Any) -> Any:
    """The target of a local reference that is a JSON pointer, or None."""
    path = resolve(unquote(reference[1:]), root) if reference.startswith("#") else None
    return None if path is None else value_at(root, path)


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
