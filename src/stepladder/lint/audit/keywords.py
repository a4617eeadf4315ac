"""The keywords of each schema by themselves: misspelt, without effect, or without a type."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.regex import traits_of
from stepladder.lint.audit.remark import Remark, Role, quoted
from stepladder.lint.audit.vocabulary import CONTENT, FORMATS, KINDS_OF, KNOWN, MEANT, properties_of, required_of
from stepladder.schemas.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stepladder.lint.audit.kinds import KindReader
    from stepladder.lint.audit.vocabulary import Kinds
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas

MAX_KEYWORDS = 100  # of a schema whose misspelt ones are compared with the known ones, at 0.1 ms each


def check_keywords(subschemas: Subschemas, kinds: KindReader, role: Role) -> Iterator[Remark]:
    """All of that, for every schema inside the one."""
    inner = {path[:length] for path in subschemas.by_path for length in range(1, len(path))}
    for path, schema in subschemas.objects.items():
        yield from _unknown(path, schema, inner)
        yield from _for_a_kind(path, schema, kinds.of(path), role)
        yield from _forbidden(path, schema)
        yield from _strings(path, schema, role)


def _unknown(path: Path, schema: Mapping[str, Any], inner: set[Path]) -> Iterator[Remark]:
    """``inner`` are the paths that hold schemas: a reference may lead to one under a keyword of the author's own."""
    for keyword in schema:
        if keyword in KNOWN or keyword.startswith("x-") or (*path, keyword) in inner:
            continue
        close = difflib.get_close_matches(keyword, KNOWN, n=1, cutoff=0.75) if len(schema) <= MAX_KEYWORDS else []
        other = f"remove it, or call it `x-{keyword}` if it is a note for other programs"
        remedy = MEANT.get(keyword) or (f"did you mean `{close[0]}`?" if close else other)
        message = f"JSON Schema has no keyword `{keyword}`: no engine and no validator applies it"
        yield Remark("unknown_keyword", (*path, keyword), message, remedy)


def _for_a_kind(path: Path, schema: Mapping[str, Any], kinds: Kinds | None, role: Role) -> Iterator[Remark]:
    constraints = [keyword for keyword in schema if keyword in KINDS_OF]
    if kinds is None and constraints:
        types = " or ".join(f"`type: {kind}`" for kind in sorted(KINDS_OF[constraints[0]]))
        message = f"{quoted(constraints)} without a `type`: values of other types pass"
        if role is not Role.HANDED_IN:
            message += ", and xgrammar applies most keywords only beside their type; validation catches the rest"
        yield Remark("untyped_constraint", (*path, constraints[0]), message, f"add {types} next to it")
    for keyword in constraints:
        if kinds is not None and not kinds & KINDS_OF[keyword]:
            message = f"`{keyword}` never applies to values of type {', '.join(sorted(kinds))}"
            yield Remark("idle_keyword", (*path, keyword), message, "remove it, or fix the `type`")


def _forbidden(path: Path, schema: Mapping[str, Any]) -> Iterator[Remark]:
    """A name that is both required and forbidden: no object fits."""
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    missing = [name for name in required_of(schema) if name not in properties_of(schema)]
    if schema.get("type") == "object" and closed and missing:
        message = f"no object fits: {quoted(missing)} is required, and `additionalProperties: false` forbids it"
        remedy = "give it a schema in `properties`, or remove it from `required`"
        yield Remark("no_value", (*path, "required"), message, remedy, Severity.ERROR)


def _strings(path: Path, schema: Mapping[str, Any], role: Role) -> Iterator[Remark]:
    pattern = schema.get("pattern")
    if role is not Role.HANDED_IN and isinstance(pattern, str) and not traits_of(pattern).anchored:
        message = "this pattern matches anywhere in a string; llama.cpp ignores it in this form, and xgrammar"
        message += " reads it as the whole string"
        remedy = f"write {_anchored(pattern)}" if len(pattern) <= 56 else "write `^` before it and `$` after it"
        yield Remark("unanchored_pattern", (*path, "pattern"), message, remedy)
    name = schema.get("format")
    if isinstance(name, str) and name not in FORMATS:
        close = difflib.get_close_matches(name, FORMATS, n=1)
        remedy = f"did you mean `{close[0]}`?" if close else "write an anchored `pattern`"
        message = f"the format `{name}` is unknown, so any string passes; vLLM refuses a schema that has it"
        yield Remark("unknown_format", (*path, "format"), message, remedy)
    for keyword in CONTENT:
        if keyword in schema:
            message = f"`{keyword}` is a note: no engine and no validator checks the string by it"
            yield Remark("unchecked_content", (*path, keyword), message, "check it by a rule registered in Python")


def _anchored(pattern: str) -> str:
    if "|" in pattern:
        return f"`^(?:{pattern})$`"
    return f"`{'' if pattern.startswith('^') else '^'}{pattern}{'' if pattern.endswith('$') else '$'}`"
