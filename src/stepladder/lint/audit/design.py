"""What a schema asks of a model: in which order it writes, what it says when it does not know, how much is free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.kinds import own_kinds, values_of
from stepladder.lint.audit.remark import Remark, quoted
from stepladder.schemas.finding import Severity
from stepladder.validation.subschemas import LISTS, MAPS, references

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.lint.audit.values import Value
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas

REASONING = frozenset({"reasoning", "thoughts", "thought", "thinking", "rationale", "analysis", "explanation"})
REASONING |= {"justification", "chain_of_thought", "scratchpad", "step_by_step"}
ANSWERS = frozenset({"answer", "final_answer", "result", "action", "decision", "verdict", "conclusion", "label"})
ANSWERS |= {"category", "class", "classification", "score", "rating", "choice", "selection"}
DEEPEST_TOLD = 4
"""Levels of fields that the prompt describes (``workflows.describe``); what lies deeper is left to the decoder."""
MANY_WORDS = 200
"""Words of one enum. Each stands in the prompt of every request, at two to three tokens a word."""
FEW_VALUES = 3  # below which a share of free texts says nothing
MOSTLY = 2 / 3


def check_order(subschemas: Subschemas) -> Iterator[Remark]:
    """Engines write fields in the schema's order: what comes after the answer cannot help it."""
    for path, schema in subschemas.by_path.items():
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        names = list(properties) if isinstance(properties, Mapping) else []
        answers = [index for index, name in enumerate(names) if name.lower() in ANSWERS]
        after = names[answers[0] + 1 :] if answers else []
        late = [name for name in after if name.lower() in REASONING]
        if late:
            first = names[answers[0]]
            message = f"`{first}` is written before {quoted(late)}: engines keep the schema's order, and so the model"
            message += " answers first and finds its reasons afterwards"
            remedy = f"put {quoted(late)} before `{first}`"
            yield Remark("answer_first", (*path, "properties", late[0]), message, remedy)


def check_size(subschemas: Subschemas) -> Iterator[Remark]:
    """Depth and enums beyond what a prompt can carry."""
    deepest = max(subschemas.by_path, key=_level, default=())
    level = _level(deepest)
    if level > DEEPEST_TOLD:
        message = f"fields nest {level} levels deep, and the prompt tells the model of the first {DEEPEST_TOLD}"
        yield Remark("too_nested", deepest, message, "draw the levels together, or split the turn in two")
    for path, schema in subschemas.by_path.items():
        words = values_of(schema) or ()
        if len(words) > MANY_WORDS:
            message = f"{len(words)} words (more than {MANY_WORDS}), and each stands in the prompt of every request"
            remedy = "choose in two turns, the group and then the word, or let a tool look it up"
            yield Remark("large_enum", (*path, "enum"), message, remedy)


def _level(path: Path) -> int:
    level, rest = 0, iter(path)
    for step in rest:
        if step in MAPS or step in LISTS:  # a name or a number follows, which may look like a keyword
            next(rest, None)
        level += step in ("properties", "anyOf", "oneOf", "allOf")
    return level


def check_depth(subschemas: Subschemas) -> Iterator[Remark]:
    """Schemas that hold themselves: a tree has a base case, and yet no bound on its depth."""
    for path, schema in subschemas.by_path.items():
        for keyword, reference in references(schema).items():
            target = subschemas.target(reference)
            if target is not None and path[: len(target)] == target:
                message = "this leads back to a schema around it, so that the model may nest until its budget ends"
                remedy = "write the levels out, as many as are wanted, or ask for one level a turn"
                yield Remark("no_depth_bound", (*path, keyword), message, remedy)


def check_unknown(subschemas: Subschemas) -> Iterator[Remark]:
    """Fields that must be given, of values that nobody can list: without another way, a model makes them up."""
    for path, schema in subschemas.by_path.items():
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
            continue
        required = schema.get("required")
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        must = [name for name in names if _only_a_value(properties.get(name))]
        if must:
            message = f"{quoted(must)} must be given: a model that does not know has no way to say so, and makes it up"
            remedy = "where that can happen, write `type: [string, 'null']`, or take the name out of `required`"
            yield Remark("no_unknown", (*path, "required"), message, remedy, Severity.HINT)


def _only_a_value(schema: Any) -> bool:
    kinds = own_kinds(schema)
    return bool(kinds) and kinds <= {"string", "integer", "number"} and values_of(schema) is None


def check_freedom(values: Sequence[Value]) -> Iterator[Remark]:
    """Whether the schema holds the model to anything but its shape."""
    scalars = [value for value in values if value.listed or value.kinds - {"object", "array"}]
    free = [v for v in scalars if "string" in v.kinds and not v.listed and not v.has("pattern", "format")]
    if len(scalars) >= FEW_VALUES and len(free) > MOSTLY * len(scalars):
        message = f"{len(free)} of {len(scalars)} values are free text, which nothing but a rule can find wrong"
        remedy = "list what is known in an `enum`, give codes a `pattern`, and check the rest by rules"
        yield Remark("mostly_free", (), message, remedy, Severity.HINT)
