"""The fourth rung: rules about what an answer means. A rule that cannot be checked counts as broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from stepladder.schemas.answer import Violation
from stepladder.schemas.errors import described
from stepladder.schemas.jsontypes import plain
from stepladder.validation.expressions import EvaluationFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.expressions import Expression

Severity = Literal["reject", "observe"]


class RuleCall(Protocol):
    """A rule written in Python: None when it holds, else the reason."""

    def __call__(self, output: Any, *, input: Any, turns: Any, tools: Any) -> str | None: ...  # noqa: A002 - the contract's word


class UncheckedError(Exception):
    """Why a call could not check its rule. Its text is the reason as it is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as ``check`` (an expression that must be exactly true) or as ``call`` (a Python function).

    ``pointer`` says which part of the output the rule is about, ``reason`` what must be so; a ``call`` gives its own
    reason. A rule of severity ``observe`` is recorded and rejects nothing. Raises ValueError unless there is exactly
    one of ``check`` and ``call``.
    """

    id: str
    check: Expression | None = None
    call: RuleCall | None = None
    pointer: str = ""
    reason: str = ""
    severity: Severity = "reject"

    def __post_init__(self) -> None:
        if (self.check is None) == (self.call is None):
            raise ValueError(f"rule {self.id} needs either a check or a call")


def broken(rules: Iterable[Rule], output: Json, names: Mapping[str, Json]) -> tuple[Violation, ...]:
    """All rules that ``output`` breaks, in the rules' order; ``Violation.source`` is the rule's id.

    ``names`` are the root names of the workflow: ``input``, ``turns``, ``tools`` and so on; ``output`` is added to
    them. A rule that cannot be checked counts as broken, for any cause, and its reason says which name was
    missing or what went wrong. Never raises.
    """
    scope = {**names, "output": output}
    return tuple(
        Violation(rule.pointer, why, rule.id) for rule in rules if (why := _why_broken(rule, scope)) is not None
    )


def _why_broken(rule: Rule, scope: Mapping[str, Json]) -> str | None:
    if rule.check is not None:
        return _checked(rule, rule.check, scope)
    if rule.call is not None:
        return _called(rule, rule.call, scope)
    return None


def _checked(rule: Rule, check: Expression, scope: Mapping[str, Json]) -> str | None:
    match check.evaluate(scope):
        case True:
            return None
        case False:
            return rule.reason or f"must satisfy {check.source}"
        case EvaluationFailure(missing=str(name)):
            return f"could not be checked: {name} is not known"
        case EvaluationFailure(reason=reason):
            return f"could not be checked: {reason}"
        case other:
            return f"could not be checked: the rule gave {type(other).__name__}, not true or false"


def _called(rule: Rule, call: RuleCall, scope: Mapping[str, Json]) -> str | None:
    # Each call gets its own copies, plain dicts and lists: no change that a rule makes reaches another rule, the
    # stored output or the machine.
    known = {name: plain(scope.get(name, {})) for name in ("input", "turns", "tools")}
    try:
        answer: object = call(plain(scope["output"]), **known)
    except UncheckedError as error:
        return f"could not be checked: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, and a rule that raises is broken
        return f"could not be checked: {described(error)}"
    match answer:
        case None:
            return None
        case str():
            return str.strip(answer) or rule.reason or f"breaks the rule {rule.id}"
        case other:
            return f"could not be checked: the rule returned {type(other).__name__}, not None or a text"
