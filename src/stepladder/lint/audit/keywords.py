"""What one schema says by its own keywords, wherever it stands: misspelt, idle, or without a type."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.regex import anchored
from stepladder.lint.audit.remark import Remark, Role, quoted
from stepladder.lint.audit.vocabulary import CONTENT, FORMATS, KINDS_OF, KNOWN, MEANT
from stepladder.schemas.finding import Severity

if TYPE_CHECKING:
    from stepladder.lint.audit.kinds import KindReader
    from stepladder.lint.audit.vocabulary import Kinds
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas


MOST_KEYWORDS = 100  # a schema with more is no slip of the pen; looking for a likeness takes 0.1 ms each
BESIDE_ITS_TYPE = " kinds pass, and xgrammar heeds most keywords only beside their type; the ladder catches the rest"


def check_keywords(subschemas: Subschemas, kinds: KindReader, role: Role) -> Iterator[Remark]:
    """All of that, of every schema inside the one."""
    inner = {path[:length] for path in subschemas.by_path for length in range(1, len(path))}
    for path, schema in subschemas.by_path.items():
        if isinstance(schema, Mapping):
            yield from _unknown(path, schema, inner)
            yield from _for_a_kind(path, schema, kinds.of(path), role)
            yield from _forbidden(path, schema)
            yield from _texts(path, schema, role)


def _unknown(path: Path, schema: Mapping[str, Any], inner: set[Path]) -> Iterator[Remark]:
    """``inner`` are the paths of what holds schemas: a reference may lead into a place of the author's own naming."""
    for keyword in schema:
        if keyword in KNOWN or keyword.startswith("x-") or (*path, keyword) in inner:
            continue
        close = difflib.get_close_matches(keyword, KNOWN, n=1, cutoff=0.75) if len(schema) <= MOST_KEYWORDS else []
        if keyword in MEANT:
            remedy = MEANT[keyword]
        elif close:
            remedy = f"did you mean `{close[0]}`?"
        else:
            remedy = f"remove it, or call it `x-{keyword}` if it is a note for other programs"
        message = f"JSON Schema has no keyword `{keyword}`, so that nothing obeys or checks it"
        yield Remark("unknown_keyword", (*path, keyword), message, remedy)


def _for_a_kind(path: Path, schema: Mapping[str, Any], kinds: Kinds | None, role: Role) -> Iterator[Remark]:
    wanting = [keyword for keyword in schema if keyword in KINDS_OF]
    if kinds is None and wanting:
        meant = sorted(KINDS_OF[wanting[0]])
        types = " or ".join(f"`type: {kind}`" for kind in meant)
        message = f"{quoted(wanting)} {'stands' if len(wanting) == 1 else 'stand'} without a `type`: values of other"
        message += " kinds pass" if role is Role.HANDED_IN else BESIDE_ITS_TYPE
        yield Remark("untyped_constraint", (*path, wanting[0]), message, f"add {types} beside it")
    for keyword in wanting:
        if kinds is not None and not kinds & KINDS_OF[keyword]:
            message = f"`{keyword}` stands beside values of type {', '.join(sorted(kinds))}, and never applies"
            yield Remark("idle_keyword", (*path, keyword), message, "remove it, or fix the `type`")


def _forbidden(path: Path, schema: Mapping[str, Any]) -> Iterator[Remark]:
    """A name that must be given and must not: no object fits."""
    required, properties = schema.get("required"), schema.get("properties", {})
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if (
        schema.get("type") != "object"
        or not closed
        or not isinstance(required, list)
        or not isinstance(properties, Mapping)
    ):
        return
    missing = [name for name in required if isinstance(name, str) and name not in properties]
    if missing:
        message = f"no object fits: {quoted(missing)} must be given, and `additionalProperties: false` forbids it"
        remedy = "give it a schema in `properties`, or take it out of `required`"
        yield Remark("no_value", (*path, "required"), message, remedy, Severity.ERROR)


def _texts(path: Path, schema: Mapping[str, Any], role: Role) -> Iterator[Remark]:
    pattern = schema.get("pattern")
    if role is not Role.HANDED_IN and isinstance(pattern, str) and not anchored(pattern):
        message = "this pattern holds anywhere in a text, with any text around it; llama.cpp ignores it in this form,"
        message += " and xgrammar reads it as the whole text"
        remedy = f"write {_shown('^(?:' + pattern + ')$' if '|' in pattern else _anchors(pattern))}"
        yield Remark("unanchored_pattern", (*path, "pattern"), message, remedy)
    named = schema.get("format")
    if isinstance(named, str) and named not in FORMATS:
        close = difflib.get_close_matches(named, FORMATS, n=1)
        remedy = f"did you mean `{close[0]}`?" if close else "write an anchored `pattern`"
        message = f"nothing knows the format `{named}`, so that any text passes; vLLM refuses a schema that has it"
        yield Remark("unknown_format", (*path, "format"), message, remedy)
    for keyword in CONTENT:
        if keyword in schema:
            message = f"`{keyword}` is a note: neither an engine nor the ladder looks at the text by it"
            yield Remark("unchecked_content", (*path, keyword), message, "check it by a rule registered in Python")


def _anchors(pattern: str) -> str:
    return ("" if pattern.startswith("^") else "^") + pattern + ("" if pattern.endswith("$") else "$")


def _shown(pattern: str) -> str:
    return f"`{pattern}`" if len(pattern) <= 60 else "`^` before it and `$` after it"
