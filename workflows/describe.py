"""A schema described in a prompt, so that the model knows what the decoder enforces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from stepladder.schemas.canonical import canonical
from stepladder.schemas.pointer import resolve, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import JsonObject

# Deeper or later parts are left to the decoder: a prompt that spells out everything is too long to be useful.
DEEPEST = 4
MOST_LINES = 200


def describe(schema: JsonObject, *, strict: bool) -> str:
    """How the answer has to look: short lines for ``strict`` decoding, else the full schema."""
    if not strict:
        whole = canonical(schema).decode()
        return f"Answer with one JSON document and nothing else. It must match this JSON Schema:\n{whole}"
    lines = list(islice(_lines(schema, schema, 0), MOST_LINES))
    return "Answer with one JSON object:\n" + "\n".join(lines) if lines else "Answer with one JSON document."


def _lines(schema: Any, root: Any, depth: int) -> Iterator[str]:
    schema = followed(schema, root)
    if not isinstance(schema, Mapping) or depth >= DEEPEST:
        return
    indent = "  " * depth
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        required = schema.get("required") or ()
        for name, value in properties.items():
            optional = "" if name in required else ", may be left out"
            yield f"{indent}- {name}: {_phrase(value, root)}{optional}"
            yield from _inside(value, root, depth + 1)
    for part in schema.get("allOf") or ():
        yield from _lines(part, root, depth + 1)
    branches = _branches(schema, root)
    if any(_holds_fields(branch) for branch in branches):
        for number, branch in enumerate(branches):
            yield f"{indent}or" if number else f"{indent}either"
            if _holds_fields(branch):
                yield from _lines(branch, root, depth + 1)
            else:
                yield f"{indent}  {_phrase(branch, root)}"


def _branches(schema: Mapping[str, Any], root: Any) -> list[Any]:
    branches = schema.get("anyOf") or schema.get("oneOf")
    return [followed(branch, root) for branch in branches] if isinstance(branches, list) else []


def _holds_fields(schema: Any) -> bool:
    return isinstance(schema, Mapping) and any(word in schema for word in ("properties", "anyOf", "oneOf", "allOf"))


def _inside(value: Any, root: Any, depth: int) -> Iterator[str]:
    value = followed(value, root)
    if isinstance(value, Mapping):
        yield from _lines(value.get("items", value), root, depth)


def _phrase(schema: Any, root: Any, *, inside: bool = False) -> str:
    """One value in a line. ``inside`` a list, nested lists are not described, as they may be recursive."""
    schema = followed(schema, root)
    if not isinstance(schema, Mapping):
        return "any value"
    if "const" in schema:
        text = f"exactly {_json(schema['const'])}"
    elif isinstance(schema.get("enum"), list):
        words = [_json(word) for word in schema["enum"]]
        text = f"exactly {words[0]}" if len(words) == 1 else f"one of {', '.join(words)}"
    elif (branches := _branches(schema, root)) and not any(_holds_fields(branch) for branch in branches):
        text = " or ".join(_phrase(branch, root, inside=inside) for branch in branches)
    else:
        text = " ".join(filter(None, (_kind(schema), _bounds(schema))))
        items = followed(schema.get("items"), root)
        if not inside and isinstance(items, Mapping) and items and not _holds_fields(items):
            text += f", each {_phrase(items, root, inside=True)}"
    description = schema.get("description")
    return f"{text} ({description})" if isinstance(description, str) else text


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    words = {"array": "list", "boolean": "true or false", "null": "null"}
    if isinstance(kind, list):
        return " or ".join(words.get(word, str(word)) for word in kind)
    return words.get(str(kind), str(kind)) if kind is not None else "any value"


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    parts = []
    if low is not None and high is not None:
        parts.append(f"from {_json(low)} to {_json(high)}")
    elif low is not None:
        parts.append(f"from {_json(low)}")
    elif high is not None:
        parts.append(f"up to {_json(high)}")
    for least, most, unit in (("minLength", "maxLength", "characters"), ("minItems", "maxItems", "items")):
        if schema.get(least):
            parts.append(f"of at least {schema[least]} {unit}")
        if most in schema:
            parts.append(f"of at most {schema[most]} {unit}")
    if "pattern" in schema:
        parts.append(f"matching {schema['pattern']}")
    if "format" in schema:
        parts.append(f"as {schema['format']}")
    return ", ".join(parts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


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
