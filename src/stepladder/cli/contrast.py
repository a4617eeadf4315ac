"""An experiment as people see it: what each arm came to, how they differ, and how the fields agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from stepladder.cli.output import escape, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from stepladder.models.experiments import Experiment

RATES = {
    "succeeded": "jobs that succeeded",
    "first_pass_format": "first-pass format",
    "semantic_pass": "semantic",
    "validity": "validity",
}
PER_JOB = {"tokens": "tokens a job", "cost": "cost a job", "engine_ms": "engine ms a job"}
SHOWN_FIELDS = 40
SHOWN_OUTCOMES = 8


def print_experiment(out: Console, shown: Mapping[str, Any]) -> None:
    """Within a hundred columns."""
    out.print(f"{shown['kind']} {shown['id']}  {escape(shorten(str(shown['name']), 40))}".rstrip())
    changed = "" if shown["variant"] is None else " changed"
    out.print(f"  {escape(shorten(shown['workflow'], 60))} {shown['version']}{changed}, {_samples(shown)}")
    if shown["at_rest"] < shown["jobs"]:
        out.print(f"  {shown['at_rest']} of {shown['jobs']} jobs have ended or wait for somebody; of these only:")
    for name, arm in shown["arms"].items():
        _print_arm(out, name, arm, shown["changes"].get(name, {}), alone=len(shown["arms"]) == 1)
    if shown.get("difference") is not None:
        out.print("")
        out.print(_table(shown), soft_wrap=False)
        _print_pairs(out, shown["difference"]["pairs"])
    if "fields" in shown:
        out.print("")
        _print_fields(out, shown["fields"])
    if shown["at_rest"] < shown["jobs"]:
        out.print(f"see it again: stepladder experiment show {shown['id']}")


def _samples(shown: Mapping[str, Any]) -> str:
    count = shown["samples"]
    if shown["share"] is not None:
        stopped = "" if shown["stopped_at"] is None else ", stopped"
        return f"beside {shown['share']:.0%} of live jobs, {count} so far{stopped}"
    return f"{count} times" if shown["kind"] == "stability" else f"{count} input{'' if count == 1 else 's'}"


def _print_arm(out: Console, name: str, arm: Mapping[str, Any], changes: Mapping[str, Any], *, alone: bool) -> None:
    said = ", ".join(f"{path}={json.dumps(value, ensure_ascii=False)}" for path, value in changes.items())
    if not alone:
        out.print(f"  {name}: {escape(shorten(said, 90)) or 'as it is published'}")
    indent = "  " if alone else "     "
    jobs = ", ".join(f"{times} {status}" for status, times in sorted(arm["jobs"].items()))
    failures = ", ".join(f"{times} {failure}" for failure, times in sorted(arm["failures"].items()))
    out.print(shorten(f"{indent}jobs {jobs}{f' ({failures})' if failures else ''}"))
    outcomes = [
        f"{one['attempts']} {one['outcome']}{'' if one['cause'] is None else ' ' + shorten(one['cause'], 30)}"
        for one in arm["outcomes"]
    ]
    more = f", and {len(outcomes) - SHOWN_OUTCOMES} more" if len(outcomes) > SHOWN_OUTCOMES else ""
    out.print(escape(shorten(f"{indent}attempts {', '.join(outcomes[:SHOWN_OUTCOMES])}{more}")))
    if alone:
        for key, label in RATES.items():
            out.print(f"{indent}{label} {_share(arm['rates'][key])}")


def _table(shown: Mapping[str, Any]) -> Table:
    """With 95% intervals. What is more than chance has a star."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in (*shown["arms"], "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    arms, difference = list(shown["arms"].values()), shown["difference"]
    for key, label in RATES.items():
        cells = [_share(arm["rates"][key]) for arm in arms]
        table.add_row(f"  {label}", *cells, _points(difference["rates"][key]))
    for key, label in PER_JOB.items():
        cells = [_number(arm["per_job"][key]) for arm in arms]
        unit = f" ({arms[0]['currency']})" if key == "cost" and arms[0]["currency"] else ""
        table.add_row(f"  {label}{escape(unit)}", *cells, _number(difference["per_job"][key], sign="+"))
    return table


def _share(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return "-"
    return f"{one['value']:.1%} ({100 * one['low']:.0f}-{100 * one['high']:.0f}) of {one['count']}"


def _points(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return "-"
    ends = f"({100 * one['low']:+.0f} to {100 * one['high']:+.0f})"
    return f"{100 * one['value']:+.1f} {ends}{_star(one)}"


def _number(one: Mapping[str, Any] | None, sign: str = "") -> str:
    if one is None:
        return "-"
    ends = "" if one["low"] is None else f" ({one['low']:{sign}.4g} to {one['high']:{sign}.4g})"
    return f"{one['value']:{sign}.4g}{ends}{_star(one) if sign else ''}"


def _star(one: Mapping[str, Any]) -> str:
    return " *" if one["clear"] else "  "


def _print_pairs(out: Console, pairs: Mapping[str, Any]) -> None:
    if pairs["inputs"]:
        chance = "" if pairs["p"] is None else f"; chance alone splits them so unevenly with p = {pairs['p']:.2g}"
        out.print(
            f"  of {pairs['inputs']} inputs a and b both succeeded with {pairs['both']}, only a with"
            f" {pairs['only_first']}, only b with {pairs['only_second']}{chance}"
        )
    out.print("  in brackets 95% intervals; differences are b less a; * is more than chance", style="dim")


def _print_fields(out: Console, fields: Sequence[Mapping[str, Any]]) -> None:
    """Those that agree least come first."""
    order = sorted(fields, key=lambda one: (one["agreement"], -(one["empty"] or 0)))
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("where", no_wrap=True, max_width=24, overflow="ellipsis")
    table.add_column("field", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("agree", "of", "values", "empty"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most often", ratio=1, no_wrap=True, overflow="ellipsis")
    for one in order[:SHOWN_FIELDS]:
        table.add_row(
            escape(one["where"]),
            escape(one["pointer"] or "(whole)"),
            f"{one['agreement']:.0%}",
            str(one["jobs"]),
            str(one["distinct"]),
            "" if one["empty"] is None else f"{one['empty']:.0%}",
            escape(shorten(json.dumps(one["common"], ensure_ascii=False), 60)),
        )
    out.print(table, soft_wrap=False)
    if len(order) > SHOWN_FIELDS:
        out.print(f"  {len(order) - SHOWN_FIELDS} more, which agree no less; --json lists them")
    if not fields:
        out.print("no turn was accepted yet: there are no fields to compare")


def experiments_table(found: Sequence[Experiment]) -> Table:
    """One row each, within a hundred columns."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("id", "created (UTC)", "kind"):
        table.add_column(name, no_wrap=True)
    table.add_column("samples", justify="right", no_wrap=True)
    table.add_column("workflow", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("name", ratio=1, no_wrap=True, overflow="ellipsis")
    for one in found:
        at = f"{one.created_at:%y-%m-%d %H:%M}"
        workflow = escape(f"{one.workflow} {one.version}")
        table.add_row(str(one.id), at, str(one.kind), str(one.samples), workflow, escape(one.name))
    return table
