"""What a schema asks of a model: in which order it writes, what it can say when it does not know, how much is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.kinds import DEEPEST, own_kinds, values_of
from stepladder.lint.audit.remark import Remark, quoted
from stepladder.lint.audit.vocabulary import properties_of, required_of
from stepladder.schemas.finding import Severity
from stepladder.schemas.pointer import Path, pointer
from stepladder.validation.cycles import recursive
from stepladder.validation.subschemas import children, references

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepladder.lint.values import Value
    from stepladder.validation.subschemas import Subschemas

REASONING = frozenset({"reasoning", "thoughts", "thought", "thinking", "rationale", "analysis", "explanation"})
REASONING |= {"justification", "chain_of_thought", "scratchpad", "step_by_step"}
ANSWERS = frozenset({"answer", "final_answer", "result", "action", "decision", "verdict", "conclusion", "label"})
ANSWERS |= {"category", "class", "classification", "score", "rating", "choice", "selection"}
DEEPEST_TOLD = 4
"""Levels of fields that the prompt describes (``workflows.describe``); the decoder alone knows deeper ones."""
MANY_VALUES = 200
"""Values of one enum. Each is in the prompt of every request, at two to three tokens."""
FEW_VALUES = 3  # below which the share of free text means nothing
MOSTLY = 2 / 3


def check_order(subschemas: Subschemas) -> Iterator[Remark]:
    """Engines write fields in the schema's order: reasons that come after the answer cannot improve it."""
    for path, schema in subschemas.objects.items():
        names = list(properties_of(schema))
        answer = next((name for name in names if name.lower() in ANSWERS), None)
        after = [] if answer is None else names[names.index(answer) + 1 :]
        if late := [name for name in after if name.lower() in REASONING]:
            message = f"the model writes `{answer}` before {quoted(late)}: engines keep the schema's order, so it"
            message += " answers first and reasons afterwards"
            remedy = f"put {quoted(late)} before `{answer}`"
            yield Remark("answer_first", (*path, "properties", late[0]), message, remedy)


def check_size(subschemas: Subschemas) -> Iterator[Remark]:
    """Depth and enums beyond what a prompt can carry."""
    level, deepest = _deepest(subschemas, (), {}, 0)
    if level > DEEPEST_TOLD:
        message = f"fields nest {level} levels deep, and the prompt describes the first {DEEPEST_TOLD}"
        yield Remark("too_nested", deepest, message, "merge levels, or split the turn in two")
    for path, schema in subschemas.objects.items():
        count = len(values_of(schema) or ())
        if count > MANY_VALUES:
            message = f"{count} values (more than {MANY_VALUES}) are in the prompt of every request"
            remedy = "choose in two turns, the group and then the value, or let a tool look it up"
            yield Remark("large_enum", (*path, "enum"), message, remedy)


def _deepest(subschemas: Subschemas, path: Path, known: dict[Path, tuple[int, Path]], depth: int) -> tuple[int, Path]:
    """The number of levels below ``path``, through references, and the place of the deepest one."""
    if path not in known:
        known[path] = 0, path  # for a reference that comes back to itself
        schema = subschemas.by_path.get(path)
        steps = [step for step, _ in children(schema) if step[0] not in ("$defs", "definitions")]
        inside = [(step[0] in ("properties", "anyOf", "oneOf", "allOf"), path + step) for step in steps]
        targets = [subschemas.target(reference) for reference in references(schema).values()]
        inside += [(False, target) for target in targets if target is not None]
        for more, place in inside if depth < DEEPEST else ():
            level, deepest = _deepest(subschemas, place, known, depth + 1)
            if level + more > known[path][0]:
                known[path] = level + more, deepest
    return known[path]


def check_recursion(subschemas: Subschemas) -> Iterator[Remark]:
    """Schemas that contain themselves: a tree has a base case, and yet no limit to its depth."""
    inside = recursive(subschemas)
    for path in sorted(inside & subschemas.objects.keys(), key=pointer):
        for keyword, reference in references(subschemas.objects[path]).items():
            if subschemas.target(reference) in inside:
                message = "this refers to a schema around it, so the model may nest until its token budget ends"
                remedy = "write out as many levels as needed, or ask for one level a turn"
                yield Remark("no_depth_bound", (*path, keyword), message, remedy)


def check_unknown(subschemas: Subschemas) -> Iterator[Remark]:
    """Required fields whose values cannot be listed: a model that has no way to say "unknown" invents one."""
    for path, schema in subschemas.objects.items():
        places = {name: (*path, "properties", name) for name in required_of(schema) if name in properties_of(schema)}
        if must := [name for name, place in places.items() if _is_open_scalar(subschemas.followed(place)[1])]:
            message = f"{quoted(must)} must be given: a model that does not know cannot say so, and invents a value"
            remedy = "if it may be unknown, write `type: [string, 'null']`, or remove the name from `required`"
            yield Remark("no_unknown", (*path, "required"), message, remedy, Severity.HINT)


def _is_open_scalar(schema: Any) -> bool:
    kinds = own_kinds(schema)
    return bool(kinds) and kinds <= {"string", "integer", "number"} and values_of(schema) is None


def check_freedom(values: Sequence[Value]) -> Iterator[Remark]:
    """Whether the schema constrains anything but the shape."""
    scalars = [value for value in values if value.listed is not None or value.kinds - {"object", "array"}]
    free = [v for v in scalars if "string" in v.kinds and v.listed is None and not v.has("pattern", "format")]
    if len(scalars) >= FEW_VALUES and len(free) > MOSTLY * len(scalars):
        message = f"{len(free)} of {len(scalars)} values are free text, which only a rule can check"
        remedy = "list known values in an `enum`, give codes a `pattern`, and check the rest by rules"
        yield Remark("mostly_free", (), message, remedy, Severity.HINT)
