"""The audit of a document's schemas: a remark on a schema becomes a finding at its place in the document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stepladder.lint.audit.check import audit
from stepladder.lint.audit.remark import Remark
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepladder.lint.audit.remark import Role
    from stepladder.lint.backends.engines import Engine
    from stepladder.schemas.tool import Tool
    from stepladder.validation.upgrade import Upgraded

SIGNATURE = "change the tool's signature, as in `Annotated[str, Field(max_length=40)]`: "


@dataclass(frozen=True, slots=True)
class Audit:
    """``engine`` decodes the turns, if it is known. ``hints`` asks for findings about the design as well."""

    engine: Engine | None = None
    hints: bool = False

    def schema(self, schema: Upgraded, where: Sequence[str | int], role: Role) -> Iterator[Finding]:
        """The findings on a schema at ``where`` that its draft allows."""
        for remark in self._remarks(schema, role):
            place = pointer((*where, *remark.path))
            yield Finding(remark.code, place, remark.message, remark.remedy, remark.severity)

    def tool(self, tool: Tool, schema: Upgraded, where: Sequence[str | int], role: Role) -> Iterator[Finding]:
        """The findings on the arguments of a tool named at ``where``. Their ``schema`` is in the user's code."""
        for remark in self._remarks(schema, role):
            message = f"the arguments of `{tool.name}`, {pointer(remark.path) or '/'}: {remark.message}"
            yield Finding(remark.code, pointer(where), message, SIGNATURE + remark.remedy, remark.severity)

    def _remarks(self, schema: Upgraded, role: Role) -> Iterator[Remark]:
        for path, why, known in schema.ignored:
            remedy = "remove it" if known else "remove it, or name a newer draft in `$schema`"
            yield Remark("idle_keyword" if known else "unknown_keyword", path, f"{why}: it has no effect", remedy)
        for remark in audit(schema.schema, role, self.engine):
            if self.hints or remark.severity is not Severity.HINT:
                yield replace(remark, path=schema.origin(remark.path))
