"""A rule as a document spells it, compiled: the one way, for the machine of a workflow and for ``stepladder judge``."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stepladder.validation.expressions import BadExpression, compile_expression
from stepladder.validation.semantic import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepladder.schemas.document import RuleSpec
    from stepladder.schemas.tool import Kit


@dataclass(frozen=True, slots=True)
class BadRule:
    """Why a rule is invalid: the field, the finding's code, and what to write instead."""

    field: Literal["check", "call"]
    code: str
    message: str
    remedy: str = ""


def compile_rule(spec: RuleSpec, kit: Kit) -> Rule | BadRule:
    """Compiles the expression, or finds the registered function. Raises nothing."""
    if spec.check is not None:
        check = compile_expression(spec.check)
        if isinstance(check, BadExpression):
            return BadRule("check", "bad_expression", unusable(check))
        return Rule(spec.id, check=check, pointer=spec.pointer, reason=spec.reason, severity=spec.severity)
    name = spec.call or ""
    if name not in kit.rules:
        return BadRule("call", "unknown_rule", *unregistered("rule", name, kit.rules))
    return Rule(spec.id, call=kit.rules[name], pointer=spec.pointer, reason=spec.reason, severity=spec.severity)


def unusable(expression: BadExpression) -> str:
    return f"this expression cannot be used: {expression.reason}"


def unregistered(what: Literal["rule", "tool"], name: str, known: Iterable[str]) -> tuple[str, str]:
    """The message and the remedy for a rule or tool that is not registered."""
    close = difflib.get_close_matches(name, known, n=1)
    register = f"register it with @stepladder.{what}, and name its module: --app"
    return f"there is no {what} `{name}`", f"did you mean `{close[0]}`?" if close else register
