"""The audit of a document's schemas: a remark on a schema becomes a finding at its place in the document."""

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

SIGNATURE = "change the tool's signature, as in `Annotated[str, Field(max_length=40)]`: "


@dataclass(frozen=True, slots=True)
class Audit:
    """``engine`` decodes the turns, if it is known. ``hints`` asks for findings about the design as well."""

    engine: Engine | None = None
    hints: bool = False

    def schema(self, schema: Json, where: Sequence[str | int], role: Role) -> Iterator[Finding]:
        """The findings on a schema at ``where`` that compiles."""
        for remark in self._remarks(schema, role):
            place = pointer((*where, *remark.path))
            yield Finding(remark.code, place, remark.message, remark.remedy, remark.severity)

    def tool(self, tool: Tool, where: Sequence[str | int], role: Role) -> Iterator[Finding]:
        """The findings on the arguments of a tool named at ``where``. Their schema is in the user's code."""
        for remark in self._remarks(tool.parameters, role):
            message = f"the arguments of `{tool.name}`, {pointer(remark.path) or '/'}: {remark.message}"
            yield Finding(remark.code, pointer(where), message, SIGNATURE + remark.remedy, remark.severity)

    def _remarks(self, schema: Json, role: Role) -> Iterator[Remark]:
        for remark in audit(schema, role, self.engine):
            if self.hints or remark.severity is not Severity.HINT:
                yield remark


def fault_in(schema: Mapping[str, Any], fault: Violation, where: Sequence[str | int]) -> Finding:
    """Why a schema does not compile."""
    place = pointer(where) + fault.pointer
    message = f"this JSON Schema {fault.reason}"
    if fault.source not in REFERENCES:
        return Finding("bad_schema", place, message)
    reference = value_at(schema, resolve(fault.pointer, schema) or ())
    if not isinstance(reference, str):  # it is the schema around a circle of references
        return Finding(
            "endless_reference",
            place,
            message,
            "add a branch that does not refer back, or a list that may be empty",
        )
    if reference.startswith("#"):
        return Finding("dangling_reference", place, message, "refer to a schema under `$defs`")
    return Finding("remote_reference", place, message, "copy the schema into `$defs`, and refer to `#/$defs/NAME`")
