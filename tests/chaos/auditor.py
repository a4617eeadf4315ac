"""The auditor: checks the database against the tools' ledger and the engine's log, and trusts no other process."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from chaos.ledger import effects
from chaos.monkey import ENGINE_FAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from chaos.monkey import Hit

    Rows = list[dict[str, Any]]

SUMMARY = ("lost", "stuck", "failed", "doubled turns", "doubled effects", "broken histories", "lost answers")

JOBS = """
SELECT id, parent, workflow, status, waiting_for, failure, failure_detail, (input ->> 'n')::int AS n, result, tokens,
    turn_count, event_count, lease_owner
FROM jobs
"""
UNEVEN = """
SELECT 'events' AS what, job_id AS job FROM events JOIN jobs ON jobs.id = job_id
GROUP BY job_id, event_count HAVING count(*) <> max(ordinal) OR min(ordinal) <> 1 OR count(*) <> event_count
UNION ALL
SELECT 'turns', id FROM jobs LEFT JOIN turns ON job_id = id
GROUP BY id HAVING count(ordinal) <> COALESCE(max(ordinal), 0) OR count(ordinal) <> turn_count
UNION ALL
SELECT 'attempts', job_id FROM attempts GROUP BY job_id, turn HAVING count(*) <> max(ordinal) OR min(ordinal) <> 1
UNION ALL
SELECT 'messages', job_id FROM messages GROUP BY job_id HAVING count(*) <> max(ordinal) OR min(ordinal) <> 1
UNION ALL
SELECT 'tokens', jobs.id FROM jobs LEFT JOIN attempts ON job_id = jobs.id
GROUP BY jobs.id HAVING tokens <> COALESCE(sum(COALESCE(prompt_tokens, 0) + COALESCE(completion_tokens, 0)), 0)
UNION ALL
SELECT 'an attempt without a verdict', job_id FROM attempts JOIN jobs ON jobs.id = job_id
WHERE outcome IS NULL AND finished_at IS NOT NULL
UNION ALL
SELECT 'an open turn', job_id FROM turns JOIN jobs ON jobs.id = job_id
WHERE closed_at IS NULL AND finished_at IS NOT NULL
UNION ALL
SELECT 'ended ' || count(*) || ' times', job_id
FROM events WHERE kind IN ('job_succeeded', 'job_failed', 'job_cancelled') GROUP BY job_id HAVING count(*) > 1
UNION ALL
SELECT 'a child of an ended job', child.id FROM jobs AS child JOIN jobs ON jobs.id = child.parent
WHERE child.finished_at IS NULL AND jobs.finished_at IS NOT NULL
"""
# An accepted turn has one valid attempt, its last, and one question and one answer in the transcript.
DOUBLED = """
SELECT turns.job_id AS job, turns.ordinal AS turn, 'its attempts' AS what FROM turns JOIN attempts
    ON attempts.job_id = turns.job_id AND attempts.turn = turns.ordinal
WHERE turns.outcome = 'valid' GROUP BY turns.job_id, turns.ordinal
HAVING count(*) FILTER (WHERE attempts.outcome = 'valid') <> 1
    OR max(attempts.ordinal) <> max(attempts.ordinal) FILTER (WHERE attempts.outcome = 'valid')
UNION ALL
SELECT turns.job_id, turns.ordinal, 'the transcript' FROM turns LEFT JOIN messages
    ON messages.job_id = turns.job_id AND messages.turn = turns.ordinal
WHERE turns.outcome = 'valid' GROUP BY turns.job_id, turns.ordinal
HAVING count(messages.ordinal) FILTER (WHERE role = 'assistant') <> 1
    OR count(messages.ordinal) FILTER (WHERE role = 'user') <> 1
UNION ALL
SELECT job_id, NULL, 'state ' || state || ', taken ' || count(*) || ' times' FROM turns
WHERE outcome = 'valid' AND state <> 'list' GROUP BY job_id, state HAVING count(*) > 1
UNION ALL
SELECT job_id, NULL, 'an event of turn ' || turn || ' ' || count(*) || ' times' FROM events
WHERE kind = 'turn_accepted' GROUP BY job_id, turn HAVING count(*) > 1
"""
ATTEMPTS = """
SELECT request_id, job_id AS job, outcome, cause, judged_at FROM attempts
"""
CALLS = """
SELECT job_id AS job, (input ->> 'n')::int AS n, visits.state, body ->> 'tool' AS tool,
    body ->> 'effect' AS effect, key, body -> 'result' AS result, error_kind AS error, closed_at IS NOT NULL AS closed,
    jobs.status
FROM visits JOIN jobs ON jobs.id = job_id
WHERE kind = 'tool'
"""
PROGRESS = """
SELECT EXTRACT(epoch FROM min(at) - %(at)s)::float8 AS after_s FROM (
    SELECT min(at) AS at FROM events WHERE job_id = %(job)s AND at > %(at)s
    UNION ALL SELECT min(started_at) FROM attempts WHERE job_id = %(job)s AND started_at > %(at)s
    UNION ALL SELECT min(arrived_at) FROM attempts WHERE job_id = %(job)s AND arrived_at > %(at)s
    UNION ALL SELECT min(judged_at) FROM attempts WHERE job_id = %(job)s AND judged_at > %(at)s
) AS moments
"""


@dataclass
class Report:
    """``wrong`` maps each word of ``SUMMARY`` to the violations found; all must be empty."""

    wrong: dict[str, list[str]] = field(default_factory=lambda: {word: [] for word in SUMMARY})
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    discarded: Counter[str] = field(default_factory=Counter)
    """Answers that the engine sent completely and no worker stored, by the last fault that hit the job."""
    outcomes: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    recovery: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def ok(self) -> bool:
        return not any(self.wrong.values())

    def recovery_of(self, *kinds: str) -> tuple[float, float] | None:
        """Median and maximum of the seconds from a fault to the next progress of a job that it hit."""
        times = [after_s for kind in kinds for after_s in self.recovery.get(kind, ())]
        return (statistics.median(times), max(times)) if times else None


def audit(
    database_url: str, ledger: Path, engine_log: Path, submitted: Mapping[int, str], wanted: int, hits: Sequence[Hit]
) -> Report:
    """Audits ``wanted`` jobs, numbered from 1; ``submitted`` has the ids that the clients received."""
    report = Report()
    with psycopg.connect(database_url, row_factory=dict_row) as connection:

        def rows(statement: str) -> Rows:
            return connection.execute(statement.encode()).fetchall()

        _jobs(report, rows(JOBS), submitted, wanted)
        report.wrong["broken histories"] += [f"job {row['job']}: {row['what']}" for row in rows(UNEVEN)]
        report.wrong["doubled turns"] += [
            f"job {row['job']}, turn {row['turn']}: {row['what']}" for row in rows(DOUBLED)
        ]
        _effects(report, rows(CALLS), ledger)
        _answers(report, rows(ATTEMPTS), engine_log, hits)
        for hit in hits:
            for job in hit.jobs:
                row = connection.execute(PROGRESS, {"job": job, "at": hit.at}).fetchone()
                if row is not None and row["after_s"] is not None:
                    report.recovery[hit.kind].append(row["after_s"])
    return report


def _jobs(report: Report, jobs: Rows, submitted: Mapping[int, str], wanted: int) -> None:
    own = {job["n"]: job for job in jobs if job["parent"] is None}
    for n in range(1, wanted + 1):
        if n not in submitted or n not in own or str(own[n]["id"]) != submitted[n]:
            report.wrong["lost"].append(
                f"job {n}: submitted as {submitted.get(n)}, stored as {own.get(n, {}).get('id')}"
            )
    if len(jobs) != len({(job["parent"], job["n"]) for job in jobs}):
        report.wrong["lost"].append("a planned job was stored twice")
    for job in jobs:
        report.ends[job["workflow"], job["status"]] += 1
        match job["status"]:
            case "succeeded":
                if (job["result"] or {}).get("n") != job["n"]:
                    report.wrong["broken histories"].append(f"job {job['id']}: its result is another job's")
            case "failed":
                report.wrong["failed"].append(f"job {job['id']}: {job['failure']}, {job['failure_detail']}")
            case "cancelled":
                pass
            case status:
                where = f"{status}, waiting for {job['waiting_for']}, leased by {job['lease_owner']}"
                report.wrong["stuck"].append(f"job {job['id']} ({job['workflow']} {job['n']}): {where}")


def _effects(report: Report, calls: Rows, ledger: Path) -> None:
    took_place = effects(ledger)
    doubled = report.wrong["doubled effects"]
    keys: dict[tuple[int, str], dict[str, Any]] = {(call["n"], call["state"]): call for call in calls}
    for (n, step), lines in took_place.items():
        report.effects[f"{lines[0].kind}: ran"] += len(lines)
        report.effects[f"{lines[0].kind}: took effect"] += len({line.key for line in lines})
        call = keys.get((n, step))
        if call is None or {line.key for line in lines} != {call["key"]}:
            doubled.append(
                f"{step} of job {n}: keys {sorted({line.key for line in lines})}, kept {call and call['key']}"
            )
        if lines[0].kind == "irreversible" and len(lines) > 1:
            doubled.append(f"{step} of job {n} took effect {len(lines)} times")
    for (n, step), call in keys.items():
        done = bool(took_place.get((n, step)))
        if call["closed"] and call["error"] is None and not done:
            report.wrong["broken histories"].append(f"{step} of job {n} is recorded as done, but has no effect")
        if call["effect"] == "irreversible" and call["closed"] and call["error"] is not None and done:
            report.wrong["broken histories"].append(f"{step} of job {n} took effect, but is recorded as failed")


def _answers(report: Report, attempts: Rows, engine_log: Path, hits: Sequence[Hit]) -> None:
    """Checks that every request has a row and was sent once; counts discarded answers by fault."""
    said = [json.loads(line) for line in engine_log.read_text().splitlines() if line.startswith("{")]
    asked = Counter(line["id"] for line in said if line["word"] == "asked")
    answered = {line["id"] for line in said if line["word"] == "answered"}
    known = {attempt["request_id"]: attempt for attempt in attempts}
    lost = report.wrong["lost answers"]
    lost += [f"request {one} has no row" for one in asked if one not in known and not one.endswith("-known-good")]
    lost += [f"request {one} was sent {times} times" for one, times in asked.items() if times > 1]
    for one, attempt in known.items():
        report.outcomes[attempt["outcome"] or "none"] += 1
        if attempt["outcome"] == "transport":
            report.causes[attempt["cause"]] += 1
            if one in answered and attempt["cause"] == "abandoned":
                blamed = [
                    hit.kind
                    for hit in hits
                    if hit.at and attempt["job"] in hit.jobs and hit.at < attempt["judged_at"]
                    if hit.kind not in ENGINE_FAULTS
                ]
                report.discarded[blamed[-1] if blamed else "unknown"] += 1
        elif attempt["outcome"] is not None and one not in asked:
            lost.append(f"request {one} has a verdict but was never sent")


def table(report: Report, hits: Sequence[Hit], took_s: float, words: Mapping[str, str]) -> str:
    """The report as text."""
    times = Counter(hit.kind for hit in hits)
    lines = [f"{'fault':58}{'times':>6}{'jobs hit':>10}{'median s':>10}{'longest s':>11}"]
    for kind, text in words.items():
        if times[kind]:
            jobs = sum(len(hit.jobs) for hit in hits if hit.kind == kind)
            found = report.recovery_of(kind)
            shown = f"{found[0]:>10.1f}{found[1]:>11.1f}" if found else f"{'-':>10}{'-':>11}"
            lines.append(f"{text:58}{times[kind]:>6}{jobs or '-':>10}{shown}")
    found = report.recovery_of(*report.recovery)
    if found:
        lines.append(
            f"{'all':58}{len(hits):>6}{sum(len(hit.jobs) for hit in hits):>10}{found[0]:>10.1f}{found[1]:>11.1f}"
        )
    lines += ["", f"{'jobs':30}" + "".join(f"{status:>12}" for status in ("succeeded", "cancelled", "failed", "other"))]
    for workflow in sorted({workflow for workflow, _ in report.ends}):
        ends = {status: count for (name, status), count in report.ends.items() if name == workflow}
        other = sum(ends.values()) - sum(ends.get(status, 0) for status in ("succeeded", "cancelled", "failed"))
        counts = [*(ends.get(status, 0) for status in ("succeeded", "cancelled", "failed")), other]
        lines.append(f"{workflow:30}" + "".join(f"{count:>12}" for count in counts))
    for title, counted in (
        ("attempts", report.outcomes),
        ("lost on the way", report.causes),
        ("answered but discarded", report.discarded),
        ("effects", report.effects),
    ):
        lines.append(f"\n{title}: " + ", ".join(f"{word} {count}" for word, count in sorted(counted.items())))
    lines += [
        "",
        f"after {took_s:.0f} s: " + " · ".join(f"{len(found)} {word}" for word, found in report.wrong.items()),
    ]
    for word, found_wrong in report.wrong.items():
        lines += [f"  {word}: {line}" for line in found_wrong[:10]]
    return "\n".join(lines)
