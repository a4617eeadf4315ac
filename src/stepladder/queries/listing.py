"""Which jobs are listed, newest first: the filters, and pages that stay right while rows arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepladder.queries.search import DETAIL_MATCHES, MATCHES, patterns
from stepladder.schemas.job import JobStatus
from stepladder.schemas.jsontext import json_text
from stepladder.schemas.outcomes import CAUSES, Outcome

if TYPE_CHECKING:
    from stepladder.schemas.job_filter import JobFilter, Place

OVERVIEW = """
    job_id AS id, workflow, version, status, state, waiting_for, failure, failure_detail, input, result, turn_count,
    attempts, tokens, metadata, created_at, started_at, finished_at, replay_of, parent, priority, principal,
    token_budget, deadline_at, event_count, cancel_requested, workflow_paused, degraded, variant, bulk, hold_at,
    hold_by, raw_gone_at, events_gone_at, cost, currency
"""

LOST = "jobs.status IN ('failed', 'cancelled')"
"""The predicate of the index on jobs that failed or were cancelled."""

BROKE = "stepladder_broken(attempts.errors, attempts.observed) && %(rule)s::text[]"
"""The answer broke one of the rules."""

REJECTED = "attempts.outcome <> 'valid'"
"""The predicate of the index on rejected answers."""


def page(wanted: JobFilter, limit: int, after: Place | None) -> tuple[str, dict[str, Any]]:
    """The statement and its parameters for up to ``limit`` rows of ``job_overview`` after a place."""
    picked, parameters = places(wanted, limit, after)
    statement = (
        f"SELECT {OVERVIEW} FROM (SELECT id AS picked FROM ({picked}) AS places) AS picked"  # noqa: S608 -- words below
        " JOIN job_overview ON job_id = picked ORDER BY job_overview.created_at DESC, job_id DESC"
    )
    return statement, parameters


def places(wanted: JobFilter, limit: int, after: Place | None) -> tuple[str, dict[str, Any]]:
    """The same for only the places of those jobs, as ``id`` and ``created_at``."""
    conditions, parameters = like(wanted)
    return _picked("id, created_at", conditions, after), parameters | _at(limit, after)


def like(wanted: JobFilter) -> tuple[list[str], dict[str, Any]]:
    """The conditions on a row of ``jobs`` to pass the filter, and their parameters."""
    conditions, parameters = _of_jobs(wanted)
    found, more = _of_attempts(wanted)
    parameters |= more
    if wanted.search is not None:
        parameters |= patterns(wanted.search)
        looked = f"EXISTS ({_an_attempt('jobs', [*found, MATCHES])})"
        conditions.append(looked if found else f"{looked} OR {DETAIL_MATCHES}")
    elif found:
        conditions.append(f"EXISTS ({_an_attempt('jobs', found)})")
    return conditions, parameters


def candidates(wanted: JobFilter, limit: int, after: Place | None) -> tuple[str, dict[str, Any]]:
    """The jobs that a search reads, with ``hit`` for those where the text is found. Only their answers are read."""
    if wanted.search is None:
        raise ValueError("there is no text to search for")
    conditions, parameters = _of_jobs(wanted)
    found, more = _of_attempts(wanted)
    if found:
        conditions.append(f"EXISTS ({_an_attempt('jobs', found)})")
    picked = _picked("id, created_at, failure_detail", conditions, after)
    attempt = _an_attempt("looked", [*found, MATCHES])
    told = "false" if found else f"COALESCE({DETAIL_MATCHES}, false)"
    statement = (
        f"SELECT id, created_at, {told} OR (SELECT true FROM ({attempt}) AS found LIMIT 1) IS TRUE AS hit"  # noqa: S608 -- as below
        f" FROM ({picked}) AS looked ORDER BY created_at DESC, id DESC"
    )
    return statement, parameters | more | patterns(wanted.search) | _at(limit, after)


def _picked(columns: str, conditions: list[str], after: Place | None) -> str:
    if after is not None:
        conditions = [*conditions, "(created_at, id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)"]
    where = " AND ".join(f"({condition})" for condition in conditions) or "true"
    return (
        f"SELECT {columns} FROM jobs WHERE {where}"  # noqa: S608 -- made of the words below
        " ORDER BY created_at DESC, id DESC LIMIT %(limit)s"
    )


def _at(limit: int, after: Place | None) -> dict[str, Any]:
    place = {} if after is None else {"after_at": after.created_at, "after_id": after.job_id}
    return {"limit": limit, **place}


def _an_attempt(jobs: str, conditions: list[str]) -> str:
    """An attempt of the job for which all the conditions hold."""
    where = " AND ".join([f"attempts.job_id = {jobs}.id", *conditions])
    return f"SELECT FROM attempts WHERE {where}"


def _of_attempts(wanted: JobFilter) -> tuple[list[str], dict[str, Any]]:
    """The conditions on an attempt, without the text search, and their parameters."""
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    outcomes = {Outcome(word) for word in wanted.outcome}
    if wanted.cause:
        told = {outcome for word in wanted.cause for outcome in _outcomes_of(word)}
        outcomes = outcomes & told if outcomes else told
        conditions.append("attempts.cause = ANY(%(cause)s::text[])")
        parameters["cause"] = list(wanted.cause)
    if wanted.outcome or wanted.cause:
        conditions.append("attempts.outcome = ANY(%(outcome)s::text[])")
        parameters["outcome"] = sorted(outcomes)
        if Outcome.VALID not in outcomes:
            conditions.append(REJECTED)
    if wanted.rule:
        conditions.append(BROKE)
        parameters["rule"] = list(wanted.rule)
    return conditions, parameters


def _outcomes_of(cause: str) -> list[Outcome]:
    """Those that may have the cause: keywords of schemas and ids of rules are nowhere listed."""
    known = [outcome for outcome, causes in CAUSES.items() if cause in set(causes)]
    return [*known, Outcome.SCHEMA_VIOLATION, Outcome.SEMANTIC]


def _of_jobs(wanted: JobFilter) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    words = {
        "workflow": wanted.workflow,
        "failure": wanted.failure,
        "state": wanted.state,
        "principal": wanted.principal,
    }
    for column, wanted_words in words.items():
        if wanted_words:
            conditions.append(f"jobs.{column} = ANY(%(of_{column})s::text[])")
            parameters[f"of_{column}"] = [str(word) for word in wanted_words]
    if wanted.failure:
        conditions.append(LOST)
    if wanted.status:
        conditions.append(_status(wanted.status, parameters))
    for nth, (key, values) in enumerate(wanted.metadata.items()):
        names = [f"metadata_{nth}_{n}" for n in range(len(values))]
        conditions.append(" OR ".join(f"jobs.metadata @> %({name})s::jsonb" for name in names) or "false")
        parameters |= {name: json_text({key: value}) for name, value in zip(names, values, strict=True)}
    if wanted.parent is not None:
        conditions.append("jobs.parent = %(parent)s")
        parameters["parent"] = wanted.parent
    if wanted.replay_of:
        conditions.append("jobs.replay_of = ANY(%(replay_of)s::uuid[])")
        parameters["replay_of"] = list(wanted.replay_of)
    if wanted.among is not None:
        conditions.append("jobs.id = ANY(%(among)s::uuid[])")
        parameters["among"] = list(wanted.among)
    if wanted.created_after is not None:
        conditions.append("jobs.created_at >= %(created_after)s")
        parameters["created_after"] = wanted.created_after
    if wanted.created_before is not None:
        conditions.append("jobs.created_at < %(created_before)s")
        parameters["created_before"] = wanted.created_before
    return conditions, parameters


def _status(words: tuple[JobStatus, ...], parameters: dict[str, Any]) -> str:
    """As ``job_overview`` says it, where a live job that is paused shows that alone; in words that indexes know."""
    ended = [word for word in words if word.final]
    live = [word for word in words if not word.final and word is not JobStatus.PAUSED]
    any_of = []
    if ended:
        lost = f" AND {LOST}" if JobStatus.SUCCEEDED not in ended else ""
        any_of.append(f"jobs.status = ANY(%(ended)s::text[]){lost}")
        parameters["ended"] = [str(word) for word in ended]
    if live:
        any_of.append("jobs.finished_at IS NULL AND jobs.paused_at IS NULL AND jobs.status = ANY(%(live)s::text[])")
        parameters["live"] = [str(word) for word in live]
    if JobStatus.PAUSED in words:
        any_of.append("jobs.finished_at IS NULL AND jobs.paused_at IS NOT NULL")
    return " OR ".join(f"({one})" for one in any_of)
