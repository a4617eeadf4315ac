"""What to do about an answer that was not accepted: one pure decision over the attempts so far and their limits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias, assert_never

from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.termination import AT_MODEL_LIMIT, repeats
from stepladder.workflows.job import JobFailure
from stepladder.workflows.notes import note_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from stepladder.schemas.answer import Verdict
    from stepladder.workflows.job import Attempt

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
RAISE = 2  # a truncated answer is given this many times the budget, until the model's own limit

_SAID_ELSEWHERE = frozenset(
    {
        (Outcome.TRUNCATION, Cause.REASONING),
        (Outcome.EMPTY, Cause.CONTENT_IN_REASONING),
        (Outcome.EMPTY, Cause.UNEXPECTED_TOOL_CALLS),
    }
)
"""Answers without content, which therefore cannot be compared."""


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The limits on the attempts of one turn. None is unlimited, and 0 allows none.

    ``attempts`` counts answers that arrived, ``transport`` the rest; ``token_budget`` and ``deadline_at`` are the
    job's. ``max_model_len`` is the engine's limit on prompt and completion together, in tokens, if known.
    """

    attempts: int
    transport: int | None = None
    token_budget: int | None = None
    deadline_at: datetime | None = None
    max_model_len: int | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Ask again ``after_s`` seconds, with ``note`` behind the question."""

    max_completion_tokens: int
    note: str = ""
    after_s: float = 0.0


Decision: TypeAlias = Again | JobFailure


def first(budget: int, limits: RetryLimits, spent: int, now: datetime) -> Decision:
    """Whether a turn may be asked at all. ``spent`` are the job's tokens so far, ``budget`` is for the completion."""
    if limits.attempts <= 0:
        return JobFailure(Failure.ATTEMPTS_EXHAUSTED, "retry.attempts is 0, so that the turn may not be asked")
    return _bounded(Again(budget), limits, spent, now)


def decide(
    attempts: Sequence[Attempt], limits: RetryLimits, spent: int, now: datetime, key: str, *, rested: bool = False
) -> Decision:
    """What follows the last attempt, whose verdict is not ``valid``.

    ``spent`` are the job's tokens so far, ``key`` sets the jitter of turns apart, and ``rested`` says that the backoff
    this asks for has already passed.
    """
    last = attempts[-1]
    verdict = last.verdict
    if verdict is None:
        raise ValueError("only an attempt that failed is retried")
    match verdict.outcome:
        case Outcome.TRANSPORT:
            decision = _transport(attempts, verdict, limits, key)
        case Outcome.SCHEMA_REJECTED:
            decision = JobFailure(Failure.SCHEMA_REJECTED, _detail(verdict))
        case Outcome.REQUEST_REJECTED:
            decision = JobFailure(Failure.REQUEST_REJECTED, _detail(verdict))
        case Outcome.REFUSED:
            decision = JobFailure(Failure.REFUSED, _detail(verdict))
        case Outcome.TRUNCATION:
            decision = _answered(attempts, verdict, limits) or _truncation(last, verdict, limits)
        case Outcome.EMPTY | Outcome.PARSE_FAILURE | Outcome.SCHEMA_VIOLATION | Outcome.SEMANTIC:
            decision = _answered(attempts, verdict, limits) or Again(last.max_completion_tokens, note_on(verdict))
        case Outcome.VALID:
            raise ValueError("only an attempt that failed is retried")
        case _:
            assert_never(verdict.outcome)
    if isinstance(decision, JobFailure):
        return decision
    again = replace(decision, after_s=0.0) if rested else decision
    bounded = _bounded(again, limits, spent, now, prompt=_prompt_tokens(attempts))
    cut_at = last.max_completion_tokens
    if isinstance(bounded, Again) and bounded.max_completion_tokens <= cut_at < again.max_completion_tokens:
        detail = f"{spent} of {limits.token_budget} tokens are spent; the rest is too few for an answer cut at {cut_at}"
        return JobFailure(Failure.TOKEN_BUDGET, detail)
    return bounded


def wants_fresh_connection(attempts: Sequence[Attempt]) -> bool:
    """Whether the last attempt follows one that was lost: what broke a connection may have broken its neighbours."""
    return len(attempts) > 1 and _is_lost(attempts[-2])


def _answered(attempts: Sequence[Attempt], verdict: Verdict, limits: RetryLimits) -> JobFailure | None:
    """The end of a turn whose answer is a repetition, or its last allowed one."""
    answers = [attempt for attempt in attempts if not _is_lost(attempt)]
    said = _said(answers[-1])
    if said is not None and said in map(_said, answers[:-1]):
        return JobFailure(Failure.ATTEMPTS_EXHAUSTED, f"repeated: the same answer came twice, {_detail(verdict)}")
    if len(answers) >= limits.attempts:
        detail = f"{len(answers)} of {limits.attempts} attempts, {_detail(verdict)}"
        return JobFailure(Failure.ATTEMPTS_EXHAUSTED, detail)
    return None


def _said(attempt: Attempt) -> tuple[Outcome, str] | None:
    """The key by which two answers count as the same, or None if their content cannot be compared.

    The same text cut off and then ended is not the same answer: the model got no note about it.
    """
    verdict = attempt.verdict
    if verdict is None or (verdict.outcome, verdict.cause) in _SAID_ELSEWHERE:
        return None
    if verdict.outcome is Outcome.EMPTY:  # null, no text and white space are the same nothing
        return verdict.outcome, ""
    return None if attempt.content_hash is None else (verdict.outcome, attempt.content_hash)


def _truncation(last: Attempt, verdict: Verdict, limits: RetryLimits) -> Decision:
    note = note_on(verdict) if verdict.cause == Cause.RUNAWAY else last.note
    if verdict.cause == Cause.RUNAWAY and repeats((verdict.completion.content or b"").decode("utf-8", "replace")):
        return Again(last.max_completion_tokens, note)  # more budget would be filled with more of the same
    word, usage = verdict.completion.finish_reason, verdict.completion.usage
    if word is not None and word.lower() in AT_MODEL_LIMIT:
        return JobFailure(
            Failure.ATTEMPTS_EXHAUSTED, f"the model's limit, as the engine says ({word}): {_detail(verdict)}"
        )
    raised = last.max_completion_tokens * RAISE
    if limits.max_model_len is not None:
        prompt = 0 if usage is None else usage.prompt_tokens
        raised = min(raised, limits.max_model_len - prompt)
        if raised <= last.max_completion_tokens:
            detail = f"the model's limit of {limits.max_model_len} tokens, {prompt} of them for the prompt, leaves no"
            detail += f" more than the {last.max_completion_tokens} that were too few: {_detail(verdict)}"
            return JobFailure(Failure.ATTEMPTS_EXHAUSTED, detail)
    return Again(raised, note)


def _transport(attempts: Sequence[Attempt], verdict: Verdict, limits: RetryLimits, key: str) -> Decision:
    last = attempts[-1]
    if verdict.cause == Cause.ABANDONED:  # the worker died: neither the engine nor the model is to blame
        return Again(last.max_completion_tokens, last.note)
    retries = _losses(attempts) - 1
    if limits.transport is not None and retries >= limits.transport:
        detail = f"{retries} of {limits.transport} transport retries, {_detail(verdict)}"
        return JobFailure(Failure.ATTEMPTS_EXHAUSTED, detail)
    in_a_row = _losses(takewhile(_is_lost, reversed(attempts)))
    after_s = backoff(in_a_row, f"{key}/{last.ordinal}")
    return Again(last.max_completion_tokens, last.note, max(after_s, verdict.retry_after_s or 0.0))


def backoff(failures: int, key: str) -> float:
    """Seconds of backoff after a number of failures in a row, from 1: doubling, bounded, with jitter from ``key``."""
    return min(FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 16), LONGEST_BACKOFF_S) * _jitter(key)


def _is_lost(attempt: Attempt) -> bool:
    return attempt.verdict is not None and attempt.verdict.outcome is Outcome.TRANSPORT


def _losses(attempts: Iterable[Attempt]) -> int:
    """How many exchanges were lost, those of a worker that died left out."""
    verdicts = [attempt.verdict for attempt in attempts if attempt.verdict is not None]
    return sum(one.outcome is Outcome.TRANSPORT and one.cause != Cause.ABANDONED for one in verdicts)


def _prompt_tokens(attempts: Sequence[Attempt]) -> int:
    """The prompt tokens of the turn's question as the engine last counted them; 0 if it never did."""
    counted = [
        attempt.verdict.completion.usage.prompt_tokens
        for attempt in attempts
        if attempt.verdict is not None and attempt.verdict.completion.usage is not None
    ]
    return counted[-1] if counted else 0


def _jitter(key: str) -> float:
    """Between a half and one, spread over turns and yet the same for the same attempt: chance has no place here."""
    return 0.5 + int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**33


def _bounded(again: Again, limits: RetryLimits, spent: int, now: datetime, prompt: int = 0) -> Decision:
    """The attempt within what the job and the model have left for it. ``prompt`` tokens go before the first word."""
    most = again.max_completion_tokens
    if limits.max_model_len is not None:  # engines refuse a larger budget or lower it
        most = min(most, limits.max_model_len)
    if limits.token_budget is not None:
        left = limits.token_budget - spent - prompt
        if left <= 0:
            needed = f", and the prompt takes {prompt}" if spent < limits.token_budget else ""
            return JobFailure(Failure.TOKEN_BUDGET, f"{spent} of {limits.token_budget} tokens are spent{needed}")
        most = min(most, left)
    if limits.deadline_at is not None and now + timedelta(seconds=again.after_s) >= limits.deadline_at:
        deadline = limits.deadline_at.isoformat(timespec="seconds")
        late = f"comes before the end of a backoff of {again.after_s:.1f} s" if again.after_s > 0 else "has passed"
        return JobFailure(Failure.DEADLINE, f"the deadline, {deadline}, {late}")
    return replace(again, max_completion_tokens=most)


def _detail(verdict: Verdict) -> str:
    text = verdict.outcome.value + (f" ({verdict.cause})" if verdict.cause else "")
    if verdict.errors:
        error = verdict.errors[0]
        text += f": {error.pointer + ' ' if error.pointer else ''}{error.reason}"
    return text[:500]
