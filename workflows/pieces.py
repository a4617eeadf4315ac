"""The pieces that states are made of: schemas, templates, expressions, rules and tools, checked where they stand."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding
from stepladder.schemas.pointer import pointer
from stepladder.validation.contradictions import contradictions
from stepladder.validation.expressions import BadExpression, Expression, compile_expression
from stepladder.validation.schema import BadSchema, Schema, compile_schema
from stepladder.validation.semantic import Rule
from stepladder.workflows.names import ROOTS
from stepladder.workflows.templates import BadTemplate, Template, compile_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepladder.schemas.tool import Kit, Tool
    from stepladder.workflows.machine import Shape

Where: TypeAlias = Sequence[str | int]

KINDS_BY_ROOT: dict[str, tuple[type, ...]] = {
    "turns": (doc.Ask,),
    "tools": (doc.Call,),
    "errors": (doc.Call,),
    "signals": (doc.Wait,),
    "visits": (doc.Ask, doc.Call, doc.Wait),
}


class Pieces:
    """Compiles pieces of one document. What is wrong with any goes to ``findings``, and the piece is None."""

    def __init__(self, document: doc.Workflow, kit: Kit) -> None:
        self.document = document
        self.kit = kit
        self.findings: list[Finding] = []

    def schema(self, schema: Mapping[str, Any], where: Where) -> Schema | None:
        """The schema that stands in the document at ``where``."""
        compiled = compile_schema(schema)
        if isinstance(compiled, BadSchema):
            for fault in compiled.violations:
                finding = Finding("bad_schema", pointer(where) + fault.pointer, f"this JSON Schema {fault.reason}")
                self.findings.append(finding)
            return None
        for found in contradictions(schema):
            self.findings.append(
                Finding("no_value", pointer(where) + found.pointer, f"this JSON Schema {found.reason}")
            )
        return compiled

    def joined_schema(self, schema: Mapping[str, Any], where: Where) -> Schema | None:
        """A schema that stands nowhere in the document, made of what stands around ``where``."""
        compiled = compile_schema(schema)
        if isinstance(compiled, BadSchema):
            for fault in compiled.violations:
                message = f"the output and the tools' arguments make no schema together: {fault.pointer} {fault.reason}"
                self.find("bad_schema", where, message, "let references lead to #/$defs/...")
            return None
        return compiled

    def template(self, source: str, where: Where, roots: Iterable[str] = ROOTS) -> Template | None:
        compiled = compile_template(source)
        if isinstance(compiled, BadTemplate):
            message = f"this template cannot be used: {compiled.reason} (line {compiled.line} of it)"
            self.find("bad_template", where, message)
            return None
        self._check_names(compiled.names, where, roots)
        return compiled

    def expression(self, source: str, where: Where, roots: Iterable[str] = ROOTS) -> Expression | None:
        compiled = compile_expression(source)
        if isinstance(compiled, BadExpression):
            self.find("bad_expression", where, f"this expression cannot be used: {compiled.reason}")
            return None
        self._check_names(compiled.names, where, roots)
        return compiled

    def shape(self, shape: str | Mapping[str, str] | None, where: Where) -> Shape | None:
        if shape is None:
            return None
        if isinstance(shape, str):
            return self.expression(shape, where)
        expressions = {name: self.expression(source, (*where, name)) for name, source in shape.items()}
        return {name: expression for name, expression in expressions.items() if expression is not None}

    def rules(self, specs: Sequence[doc.RuleSpec], where: Where) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        seen: set[str] = set()
        for index, spec in enumerate(specs):
            place = (*where, index)
            if spec.id in seen:
                self.find("rule_twice", (*place, "id"), f"the rule id `{spec.id}` stands twice", "give each its own")
            seen.add(spec.id)
            check = None if spec.check is None else self.expression(spec.check, (*place, "check"), (*ROOTS, "output"))
            call = None if spec.call is None else self.kit.rules.get(spec.call)
            if spec.call is not None and call is None:
                self._unknown("rule", spec.call, self.kit.rules, (*place, "call"))
            if check is not None or call is not None:
                rules.append(Rule(spec.id, check, call, spec.pointer, spec.reason, spec.severity))
        return tuple(rules)

    def tool(self, name: str, where: Where) -> Tool | None:
        tool = self.kit.tools.get(name)
        if tool is None:
            self._unknown("tool", name, self.kit.tools, where)
        return tool

    def _unknown(self, what: str, name: str, known: Mapping[str, object], where: Where) -> None:
        close = difflib.get_close_matches(name, known, n=1)
        remedy = (
            f"did you mean `{close[0]}`?"
            if close
            else f"register it with @stepladder.{what}, and name its module: --app"
        )
        self.find(f"unknown_{what}", where, f"there is no {what} `{name}`", remedy)

    def _check_names(self, paths: Iterable[tuple[str, ...]], where: Where, roots: Iterable[str]) -> None:
        """A name that can never be there is a slip of the pen; one that may not be there yet is for run time."""
        allowed = tuple(roots)
        for path in sorted(paths):
            root = path[0]
            if root not in allowed:
                self.find(
                    "unknown_name", where, f"there is no name `{root}` here", f"the names are {', '.join(allowed)}"
                )
            elif root in KINDS_BY_ROOT and len(path) > 1:
                states = [n for n, s in self.document.states.items() if isinstance(s, KINDS_BY_ROOT[root])]
                if path[1] not in states:
                    message = f"`{root}.{path[1]}` can never be there: `{root}` holds {', '.join(states) or 'nothing'}"
                    self.find("unknown_name", where, message)

    def find(self, code: str, where: Where, message: str, remedy: str = "") -> None:
        self.findings.append(Finding(code, pointer(where), message, remedy))
