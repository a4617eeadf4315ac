"""The audit of one schema: what is risky in it under any engine, and what one engine would not enforce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.lint.audit.bounds import check_bounds
from stepladder.lint.audit.design import check_freedom, check_order, check_recursion, check_size, check_unknown
from stepladder.lint.audit.keywords import check_keywords
from stepladder.lint.audit.kinds import KindReader
from stepladder.lint.audit.remark import Remark, Role
from stepladder.lint.backends.engines import Verdict, enforced_nowhere, remedy_for, wants_a_type
from stepladder.lint.backends.forms import OVERLAP, forms_of
from stepladder.lint.values import Values, Work
from stepladder.schemas.finding import Severity
from stepladder.validation.subschemas import Subschemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepladder.lint.backends.engines import Engine
    from stepladder.lint.backends.forms import Found
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path

MOST_STEPS = 100_000
"""Schemas visited in one audit, some 0.2 s. References into branches into references can multiply without end; the rest
is not visited."""
OBJECTIONS = {
    Verdict.REFUSED: (
        "engine_refuses",
        "{engine} refuses `{form}`, and with it every request of this turn",
        Severity.ERROR,
    ),
    Verdict.IGNORED: (
        "engine_ignores",
        "{engine} ignores `{form}`: validation catches it, at the cost of a retry",
        Severity.WARNING,
    ),
    Verdict.NARROWED: (
        "engine_narrows",
        "{engine} allows less than `{form}` does: some valid answers can never be given",
        Severity.WARNING,
    ),
}


def audit(schema: Json, role: Role, engine: Engine | None = None) -> tuple[Remark, ...]:
    """The remarks on ``schema``, one of each code a path, ordered by path. Never raises.

    A schema of what people hand in is checked for misspelt and idle keywords only: no decoder works under it.
    ``engine`` matters only for what is decoded.
    """
    subschemas = Subschemas(schema)
    kinds = KindReader(subschemas)
    remarks = list(check_keywords(subschemas, kinds, role))
    if role is not Role.HANDED_IN:
        found = list(Values(schema, Work(MOST_STEPS).spend).everywhere())
        for value in found:
            remarks += check_bounds(value)
        for check in (check_order, check_size, check_recursion, check_unknown):
            remarks += check(subschemas)
        remarks += check_freedom(found)
        forms = list(forms_of(subschemas, kinds))
        remarks += _enforced_nowhere(forms, role)
        if engine is not None and role is Role.DECODED:
            remarks += _objections(forms, engine, remarks)
    first: dict[tuple[str, Path], Remark] = {}
    for remark in remarks:
        first.setdefault((remark.code, remark.path), remark)
    return tuple(sorted(first.values(), key=lambda remark: [str(step) for step in remark.path]))


def _enforced_nowhere(forms: Iterable[Found], role: Role) -> Iterator[Remark]:
    for found in forms:
        if found.form == OVERLAP:
            message = "a value may fit several of these branches: no engine checks that only one fits, validation does"
            yield Remark("loose_one_of", found.path, message, remedy_for(found.form))
        elif enforced_nowhere(found.form) and not wants_a_type(found.form):  # that is an `untyped_constraint`
            if role is Role.DECODED:
                message = f"no known engine enforces `{found.form}`: some refuse the schema for it, others ignore it"
                severity = Severity.ERROR
            else:
                message = f"no known engine enforces `{found.form}`; this turn has no decoder, and validation checks it"
                severity = Severity.WARNING
            yield Remark("not_enforced", found.path, message, remedy_for(found.form), severity)


def _objections(forms: Iterable[Found], engine: Engine, said: Iterable[Remark]) -> Iterator[Remark]:
    """What this engine does not enforce, apart from what is true of every engine."""
    known = {remark.path for remark in said if remark.code in ("not_enforced", "loose_one_of", "untyped_constraint")}
    for found in forms:
        verdict = engine.verdict(found.form)
        if found.path not in known and verdict in OBJECTIONS:
            code, message, severity = OBJECTIONS[verdict]
            text = message.format(engine=engine.name, form=found.form)
            yield Remark(code, found.path, text, remedy_for(found.form), severity)
