"""An experiment as people see it: what each variant did, how they differ, and how the fields agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stepladder.cli.output import escape, make_table, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rich.console import Console
    from rich.table import Table

    from stepladder.schemas.experiment import Arm, Difference, Experiment, ExperimentHead, FieldAgreement, Interval

RATES = {
    "succeeded": "jobs that succeeded",
    "first_pass_format": "first-pass format",
    "semantic_pass": "semantic",
    "validity": "validity",
}
PER_JOB = {"tokens": "tokens a job", "cost": "cost a job", "engine_ms": "engine ms a job"}
SHOWN_FIELDS = 40
SHOWN_OUTCOMES = 8


def print_experiment(out: Console, shown: Experiment) -> None:
    """Within a hundred columns."""
    running = shown.at_rest < shown.jobs
    changed = "" if shown.variant is None else " changed"
    out.print(f"{shown.kind} {shown.id}  {escape(shorten(shown.name, 40))}".rstrip())
    out.print(f"  {escape(shorten(shown.workflow, 60))} {shown.version}{changed}, {_samples(shown)}")
    if running:
        out.print(f"  {shown.at_rest} of {shown.jobs} jobs have ended or wait for a person; the figures are of these:")
    for name, arm in shown.arms.items():
        if len(shown.arms) > 1:
            said = ", ".join(f"{path}={_json(value)}" for path, value in shown.changes.get(name, {}).items())
            out.print(f"  {name}: {escape(shorten(said, 90)) or 'as published'}")
        _print_arm(out, arm, indent="  " if len(shown.arms) == 1 else "     ")
    if len(shown.arms) == 1:
        for key, label in RATES.items():
            out.print(f"  {label} {_share(next(iter(shown.arms.values())).rates[key])}")
    if shown.difference is not None:
        out.print("")
        out.print(_table(shown.arms, shown.difference), soft_wrap=False)
        _print_pairs(out, shown.difference)
    if shown.fields is not None:
        out.print("")
        _print_fields(out, shown.fields)
    if running:
        out.print(f"see it again: stepladder experiment show {shown.id}")


def _samples(shown: ExperimentHead) -> str:
    if shown.share is not None:
        stopped = "" if shown.stopped_at is None else ", stopped"
        return f"shadowing {shown.share:.0%} of live jobs, {shown.samples} so far{stopped}"
    return f"{shown.samples} times" if shown.kind == "stability" else plural(shown.samples, "input")


def _print_arm(out: Console, arm: Arm, indent: str) -> None:
    jobs = ", ".join(f"{times} {status}" for status, times in sorted(arm.jobs.items()))
    failures = ", ".join(f"{times} {failure}" for failure, times in sorted(arm.failures.items()))
    out.print(shorten(f"{indent}jobs {jobs}{f' ({failures})' if failures else ''}"))
    outcomes = [
        f"{one.attempts} {one.outcome}{'' if one.cause is None else ' ' + shorten(one.cause, 30)}"
        for one in arm.outcomes
    ]
    more = f", and {len(outcomes) - SHOWN_OUTCOMES} more" if len(outcomes) > SHOWN_OUTCOMES else ""
    out.print(escape(shorten(f"{indent}attempts {', '.join(outcomes[:SHOWN_OUTCOMES])}{more}")))


def _table(arms: Mapping[str, Arm], difference: Difference) -> Table:
    """With 95 % confidence intervals. A star marks what is more than chance."""
    table = make_table("", *arms, "difference", wide=("",), right=(*arms, "difference"))
    for key, label in RATES.items():
        cells = [_share(arm.rates[key]) for arm in arms.values()]
        table.add_row(f"  {label}", *cells, _points(difference.rates[key]))
    [currency, *_] = [arm.currency for arm in arms.values()]
    for key, label in PER_JOB.items():
        cells = [_number(arm.per_job[key]) for arm in arms.values()]
        unit = f" ({currency})" if key == "cost" and currency else ""
        table.add_row(f"  {label}{escape(unit)}", *cells, _number(difference.per_job[key], sign="+"))
    return table


def _share(one: Interval | None) -> str:
    if one is None or one.low is None or one.high is None:
        return "-"
    return f"{one.value:.1%} ({100 * one.low:.0f}-{100 * one.high:.0f}) of {one.count}"


def _points(one: Interval | None) -> str:
    if one is None or one.low is None or one.high is None:
        return "-"
    return f"{100 * one.value:+.1f} ({100 * one.low:+.0f} to {100 * one.high:+.0f}){_star(one)}"


def _number(one: Interval | None, sign: str = "") -> str:
    if one is None:
        return "-"
    bounds = "" if one.low is None else f" ({one.low:{sign}.4g} to {one.high:{sign}.4g})"
    return f"{one.value:{sign}.4g}{bounds}{_star(one) if sign else ''}"


def _star(one: Interval) -> str:
    return " *" if one.clear else "  "


def _print_pairs(out: Console, difference: Difference) -> None:
    pairs = difference.pairs
    if pairs.inputs:
        chance = "" if pairs.p is None else f"; p = {pairs.p:.2g} for so uneven a split by chance"
        only = f"only a with {pairs.only_first}, only b with {pairs.only_second}"
        out.print(f"  of {plural(pairs.inputs, 'input')} both succeeded with {pairs.both}, {only}{chance}")
    out.print("  in brackets 95% intervals; differences are b minus a; * is more than chance", style="dim")


def _print_fields(out: Console, fields: Sequence[FieldAgreement]) -> None:
    """Those that agree least come first."""
    if not fields:
        out.print("no turn was accepted yet: there are no fields to compare")
        return
    order = sorted(fields, key=lambda one: (one.agreement, -(one.empty or 0)))
    counts = ("agree", "of", "values", "empty")
    table = make_table("where", "field", *counts, "most often", wide=("field", "most often"), right=counts)
    for one in order[:SHOWN_FIELDS]:
        table.add_row(
            escape(shorten(one.where, 24)),
            escape(one.pointer or "(whole)"),
            f"{one.agreement:.0%}",
            str(one.jobs),
            str(one.distinct),
            "" if one.empty is None else f"{one.empty:.0%}",
            escape(shorten(_json(one.common), 60)),
        )
    out.print(table, soft_wrap=False)
    if len(order) > SHOWN_FIELDS:
        out.print(f"  {len(order) - SHOWN_FIELDS} more, which agree at least as often; --json lists them")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def experiments_table(found: Sequence[ExperimentHead]) -> Table:
    """One row each, within a hundred columns."""
    columns = ("id", "created (UTC)", "kind", "samples", "workflow", "name")
    table = make_table(*columns, wide=("workflow", "name"), right=("samples",))
    for one in found:
        at, workflow = f"{one.created_at:%y-%m-%d %H:%M}", escape(f"{one.workflow} {one.version}")
        table.add_row(str(one.id), at, str(one.kind), str(one.samples), workflow, escape(one.name))
    return table
