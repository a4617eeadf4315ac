"""Everything that is worth saying about one schema, and what one engine would make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.lint.audit.bounds import check_bounds
from stepladder.lint.audit.design import check_depth, check_freedom, check_order, check_size, check_unknown
from stepladder.lint.audit.keywords import check_keywords
from stepladder.lint.audit.kinds import KindReader
from stepladder.lint.audit.remark import Remark, Role
from stepladder.lint.audit.values import values
from stepladder.lint.backends.engines import enforced_nowhere
from stepladder.lint.backends.forms import forms_of
from stepladder.lint.backends.tables import Verdict, remedy_for
from stepladder.schemas.finding import Severity
from stepladder.validation.subschemas import Subschemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepladder.lint.backends.engines import Engine
    from stepladder.lint.backends.forms import Found
    from stepladder.schemas.jsontypes import Json

OVERLAP = "oneOf with branches that overlap"


def audit(schema: Json, role: Role, engine: Engine | None = None) -> tuple[Remark, ...]:
    """The remarks on ``schema``, each said once, in the order of the schema's paths. Never raises.

    What is handed in by people is looked at for misspelt and idle keywords alone: no decoder writes it. ``engine``
    speaks only of what is decoded.
    """
    subschemas = Subschemas(schema)
    kinds = KindReader(subschemas)
    remarks: list[Remark] = list(check_keywords(subschemas, kinds, role))
    if role is not Role.HANDED_IN:
        remarks += _for_a_model(subschemas)
        forms = list(forms_of(subschemas, kinds))
        remarks += _nowhere(forms, role)
        if engine is not None and role is Role.DECODED:
            remarks += _objections(forms, engine, remarks)
    return _once(remarks)


def _for_a_model(subschemas: Subschemas) -> Iterator[Remark]:
    held = list(values(subschemas))
    for value in held:
        yield from check_bounds(value)
    yield from check_order(subschemas)
    yield from check_size(subschemas)
    yield from check_depth(subschemas)
    yield from check_unknown(subschemas)
    yield from check_freedom(held)


def _nowhere(forms: Iterable[Found], role: Role) -> Iterator[Remark]:
    for found in forms:
        if found.form.endswith("without a type") and not found.form.startswith(("uniqueItems", "contains")):
            continue  # `untyped_constraint` says so
        if found.form == OVERLAP:
            message = "a value may fit several of these branches: no engine sees that only one does, the ladder does"
            yield Remark("loose_one_of", found.path, message, remedy_for(found.form))
        elif enforced_nowhere(found.form):
            message = f"no known engine enforces `{found.form}`: some refuse the schema for it, others ignore it"
            severity = Severity.ERROR if role is Role.DECODED else Severity.WARNING
            if severity is Severity.WARNING:
                message = f"no known engine enforces `{found.form}`; this turn has no decoder, and the ladder checks it"
            yield Remark("not_enforced", found.path, message, remedy_for(found.form), severity)


def _objections(forms: Iterable[Found], engine: Engine, said: Iterable[Remark]) -> Iterator[Remark]:
    """What this engine does not enforce, apart from what is said of every engine already."""
    known = {remark.path for remark in said if remark.code in ("not_enforced", "loose_one_of", "untyped_constraint")}
    for found in forms:
        if found.path in known:
            continue
        remedy = remedy_for(found.form)
        match engine.verdict(found.form):
            case Verdict.REFUSED:
                message = f"{engine.name} refuses `{found.form}`, and with it every request of this turn"
                yield Remark("engine_refuses", found.path, message, remedy, Severity.ERROR)
            case Verdict.IGNORED:
                message = f"{engine.name} ignores `{found.form}`: the ladder catches it, at the price of a retry"
                yield Remark("engine_ignores", found.path, message, remedy)
            case Verdict.NARROWED:
                message = f"{engine.name} allows less than `{found.form}` says: some answers can never be given"
                yield Remark("engine_narrows", found.path, message, remedy)
            case Verdict.ENFORCED:
                pass


def _once(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    first: dict[tuple[str, object], Remark] = {}
    for remark in remarks:
        first.setdefault((remark.code, remark.path), remark)
    return tuple(sorted(first.values(), key=lambda remark: [str(step) for step in remark.path]))
