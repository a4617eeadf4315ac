"""The audit of a document's schemas: what is said of a schema becomes a finding at its place in the document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.check import audit
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer, resolve, value_at
from stepladder.validation.subschemas import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepladder.lint.audit.remark import Remark, Role
    from stepladder.lint.backends.engines import Engine
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Tool

SIGNATURE = "say it in the tool's signature, as in `Annotated[str, Field(max_length=40)]`: "


@dataclass(frozen=True, slots=True)
class Audit:
    """``engine`` is the one that the turns are known to be decoded by, if any is. ``hints`` are wanted by who asks."""

    engine: Engine | None = None
    hints: bool = False

    def schema(self, schema: Json, where: Sequence[str | int], role: Role) -> Iterator[Finding]:
        """What there is to say of a schema that stands at ``where`` and compiles."""
        for remark in self._remarks(schema, role):
            place = pointer((*where, *remark.path))
            yield Finding(remark.code, place, remark.message, remark.remedy, remark.severity)

    def tool(self, tool: Tool, where: Sequence[str | int], role: Role) -> Iterator[Finding]:
        """The same of the arguments of a tool that is named at ``where``. Their schema stands in the user's code."""
        for remark in self._remarks(tool.parameters, role):
            message = f"the arguments of `{tool.name}`, {pointer(remark.path) or '/'}: {remark.message}"
            yield Finding(remark.code, pointer(where), message, SIGNATURE + remark.remedy, remark.severity)

    def _remarks(self, schema: Json, role: Role) -> Iterator[Remark]:
        for remark in audit(schema, role, self.engine):
            if self.hints or remark.severity is not Severity.HINT:
                yield remark


def fault_in(schema: Mapping[str, Any], fault: Violation, where: Sequence[str | int]) -> Finding:
    """What keeps a schema from being one."""
    place = pointer(where) + fault.pointer
    message = f"this JSON Schema {fault.reason}"
    if fault.source not in REFERENCES:
        return Finding("bad_schema", place, message)
    reference = value_at(schema, resolve(fault.pointer, schema) or ())
    if not isinstance(reference, str):  # the schema around a reference: it is the circle that is wrong
        return Finding("endless_reference", place, message, "let one branch of it, or a list that may be empty, end it")
    if reference.startswith("#"):
        return Finding("dangling_reference", place, message, "refer to a schema that stands under `$defs`")
    return Finding("remote_reference", place, message, "copy the schema into `$defs`, and refer to `#/$defs/NAME`")
