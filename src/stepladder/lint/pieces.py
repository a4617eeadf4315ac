"""Compiles and checks what states are made of: schemas, templates, expressions, rules and tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.lint.audit.remark import Role
from stepladder.lint.contradictions import contradictions
from stepladder.lint.names import Name, Read, unknown_names
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer
from stepladder.validation.expressions import BadExpression, Expression, compile_expression
from stepladder.validation.schema import BadSchema, Schema, compile_schema
from stepladder.workflows.names import ROOTS
from stepladder.workflows.rules import BadRule, compile_rule, unregistered, unusable
from stepladder.workflows.templates import BadTemplate, Template, compile_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepladder.lint.schemas import Audit
    from stepladder.schemas import document as doc
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit, Tool
    from stepladder.validation.semantic import Rule
    from stepladder.workflows.machine import Shape

Where: TypeAlias = Sequence[str | int]


class Pieces:
    """Compiles pieces of one document. Errors go to ``findings``, and the piece is then None."""

    def __init__(self, document: doc.Workflow, kit: Kit, audit: Audit | None = None) -> None:
        self.document = document
        self.kit = kit
        self.audit = audit
        self.findings: list[Finding] = []
        self.reads: list[Read] = []
        self.schemas: dict[Name, Json] = {}

    def schema(
        self, schema: Mapping[str, Any], where: Where, role: Role = Role.HANDED_IN, name: Name = ()
    ) -> Schema | BadSchema:
        """The schema at ``where``, of the values that expressions call ``name``.

        One that its draft allows is audited, even if it cannot be used.
        """
        compiled = compile_schema(schema)
        if isinstance(compiled, BadSchema):
            self.findings.extend(fault.finding(where) for fault in compiled.violations)
        if (upgraded := compiled.upgraded) is not None:
            self.schemas |= {name: upgraded.schema} if name else {}
            for path, why in contradictions(upgraded.schema):
                self.find("no_value", (*where, *upgraded.origin(path)), f"this JSON Schema {why}")
            if self.audit is not None:
                self.findings.extend(self.audit.schema(upgraded, where, role))
        return compiled

    def joined_schema(self, schema: Mapping[str, Any], where: Where) -> Schema | None:
        """A schema that was combined from several parts of the document around ``where``."""
        compiled = compile_schema(schema)
        if isinstance(compiled, BadSchema):
            for fault in compiled.violations:
                message = f"the output and the tools' arguments cannot be combined: {fault.pointer} {fault.reason}"
                self.find("bad_schema", where, message, "use references of the form #/$defs/...")
            return None
        return compiled

    def arguments(self, tool: Tool, where: Where, role: Role) -> None:
        """Audit the arguments of a tool that a turn may choose: the model writes them."""
        upgraded = compile_schema(tool.parameters).upgraded
        if self.audit is not None and upgraded is not None:
            self.findings.extend(self.audit.tool(tool, upgraded, where, role))

    def template(self, source: str, where: Where, roots: Iterable[str] = ROOTS) -> Template | None:
        compiled = compile_template(source)
        if isinstance(compiled, BadTemplate):
            message = f"this template cannot be used: {compiled.reason} (line {compiled.line} of it)"
            self.find("bad_template", where, message)
            return None
        self._reads(compiled.names, where, roots)
        return compiled

    def expression(self, source: str, where: Where, roots: Iterable[str] = ROOTS) -> Expression | None:
        compiled = compile_expression(source)
        if isinstance(compiled, BadExpression):
            self.find("bad_expression", where, unusable(compiled))
            return None
        self._reads(compiled.names, where, roots)
        return compiled

    def shape(self, shape: str | Mapping[str, str] | None, where: Where, roots: Iterable[str] = ROOTS) -> Shape | None:
        if shape is None:
            return None
        if isinstance(shape, str):
            return self.expression(shape, where, roots)
        expressions = {name: self.expression(source, (*where, name), roots) for name, source in shape.items()}
        return {name: expression for name, expression in expressions.items() if expression is not None}

    def rules(self, specs: Sequence[doc.RuleSpec], where: Where, roots: Iterable[str] = ROOTS) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        seen: set[str] = set()
        for index, spec in enumerate(specs):
            place = (*where, index)
            if spec.id in seen:
                self.find(
                    "rule_twice", (*place, "id"), f"the rule id `{spec.id}` is used twice", "give each rule its own id"
                )
            seen.add(spec.id)
            match compile_rule(spec, self.kit):
                case BadRule(field, code, message, remedy):
                    self.find(code, (*place, field), message, remedy)
                case rule:
                    if rule.check is not None:
                        self._reads(rule.check.names, (*place, "check"), (*roots, "output"))
                    rules.append(rule)
        return tuple(rules)

    def tool(self, name: str, where: Where) -> Tool | None:
        tool = self.kit.tools.get(name)
        if tool is None:
            self.find("unknown_tool", where, *unregistered("tool", name, self.kit.tools))
        return tool

    def _reads(self, paths: Iterable[tuple[str, ...]], where: Where, roots: Iterable[str]) -> None:
        reads = [Read(path, tuple(where)) for path in sorted(paths)]
        self.reads += reads
        self.findings.extend(unknown_names(reads, tuple(roots), self.document.states))

    def find(
        self, code: str, where: Where, message: str, remedy: str = "", severity: Severity = Severity.ERROR
    ) -> None:
        self.findings.append(Finding(code, pointer(where), message, remedy, severity))
