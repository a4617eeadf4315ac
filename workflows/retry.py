"""What to do about an answer that was not accepted: one pure decision over the attempts so far and their limits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias, assert_never

from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows.notes import note_on

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stepladder.schemas.answer import Verdict
    from stepladder.workflows.job import Attempt

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
RAISE = 2  # a truncated answer is given this many times the budget, until the model's own limit


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """What binds the attempts of one turn. None is no bound, and 0 is none at all.

    ``attempts`` counts answers that arrived, ``transport`` the rest; ``token_budget`` and ``deadline_at`` are the
    job's. ``max_model_len`` is the engine's limit on prompt and completion together, in tokens, where it is known.
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


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The turn has failed; ``detail`` says which bound it was."""

    failure: Failure
    detail: str


Decision: TypeAlias = Again | GiveUp


def first(budget: int, limits: RetryLimits, spent: int, now: datetime) -> Decision:
    """Whether a turn may be asked at all. ``spent`` are the job's tokens so far, ``budget`` is for the completion."""
    if limits.attempts <= 0:
        return GiveUp(Failure.ATTEMPTS_EXHAUSTED, "retry.attempts is 0, so that the turn may not be asked")
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
    if verdict is None or verdict.ok:
        raise ValueError("only an attempt that failed is retried")
    match verdict.outcome:
        case Outcome.TRANSPORT:
            decision = _transport(attempts, verdict, limits, key)
        case Outcome.SCHEMA_REJECTED:
            decision = GiveUp(Failure.SCHEMA_REJECTED, _detail(verdict))
        case Outcome.REQUEST_REJECTED:
            decision = GiveUp(Failure.REQUEST_REJECTED, _detail(verdict))
        case Outcome.REFUSED:
            decision = GiveUp(Failure.REFUSED, _detail(verdict))
        case Outcome.TRUNCATION:
            decision = _answered(attempts, limits) or _truncation(last, verdict, limits)
        case Outcome.EMPTY | Outcome.PARSE_FAILURE | Outcome.SCHEMA_VIOLATION | Outcome.SEMANTIC:
            decision = _answered(attempts, limits) or Again(last.max_completion_tokens, note_on(verdict))
        case Outcome.VALID:
            raise ValueError("a valid answer is not retried")
        case _:
            assert_never(verdict.outcome)
    if isinstance(decision, GiveUp):
        return decision
    bounded = _bounded(replace(decision, after_s=0.0) if rested else decision, limits, spent, now)
    least = last.max_completion_tokens
    if decision.max_completion_tokens > least and isinstance(bounded, Again) and bounded.max_completion_tokens <= least:
        detail = f"{spent} of {limits.token_budget} tokens are spent; the rest is too few for an answer cut at {least}"
        return GiveUp(Failure.TOKEN_BUDGET, detail)
    return bounded


def _answered(attempts: Sequence[Attempt], limits: RetryLimits) -> GiveUp | None:
    answers = [a for a in attempts if a.verdict is not None and a.verdict.outcome is not Outcome.TRANSPORT]
    last = answers[-1]
    # An answer whose budget went on reasoning is empty each time, and a larger budget is a new chance each time.
    reasoned = last.verdict is not None and last.verdict.cause == Cause.REASONING
    if (
        not reasoned
        and last.content_hash is not None
        and any(earlier.content_hash == last.content_hash for earlier in answers[:-1])
    ):
        return GiveUp(Failure.ATTEMPTS_EXHAUSTED, f"repeated: the same answer came twice, {_detail(last.verdict)}")
    if len(answers) >= limits.attempts:
        return GiveUp(
            Failure.ATTEMPTS_EXHAUSTED, f"{len(answers)} of {limits.attempts} attempts, {_detail(last.verdict)}"
        )
    return None


def _truncation(last: Attempt, verdict: Verdict, limits: RetryLimits) -> Decision:
    if verdict.cause == Cause.RUNAWAY:  # more budget would be filled with more of the same
        return Again(last.max_completion_tokens, note_on(verdict))
    raised = last.max_completion_tokens * RAISE
    if limits.max_model_len is not None:
        usage = verdict.completion.usage
        raised = min(raised, limits.max_model_len - (0 if usage is None else usage.prompt_tokens))
    if raised <= last.max_completion_tokens:
        detail = f"truncation: {last.max_completion_tokens} completion tokens are all that the model's limit allows"
        return GiveUp(Failure.ATTEMPTS_EXHAUSTED, detail)
    return Again(raised, last.note)


def _transport(attempts: Sequence[Attempt], verdict: Verdict, limits: RetryLimits, key: str) -> Decision:
    last = attempts[-1]
    if verdict.cause == Cause.ABANDONED:  # the worker died: neither the engine nor the model is to blame
        return Again(last.max_completion_tokens, last.note)
    lost = [a for a in attempts if a.verdict is not None and a.verdict.outcome is Outcome.TRANSPORT]
    lost = [a for a in lost if a.verdict is not None and a.verdict.cause != Cause.ABANDONED]
    if limits.transport is not None and len(lost) > limits.transport:
        detail = f"{limits.transport} transport retries, {_detail(verdict)}"
        return GiveUp(Failure.ATTEMPTS_EXHAUSTED, detail)
    backoff = min(FIRST_BACKOFF_S * 2 ** min(len(lost) - 1, 16), LONGEST_BACKOFF_S) * _jitter(f"{key}/{last.ordinal}")
    return Again(last.max_completion_tokens, last.note, max(backoff, verdict.retry_after_s or 0.0))


def _jitter(key: str) -> float:
    """Between a half and one, spread over turns and yet the same for the same attempt: chance has no place here."""
    return 0.5 + int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**33


def _bounded(again: Again, limits: RetryLimits, spent: int, now: datetime) -> Decision:
    if limits.token_budget is not None and spent >= limits.token_budget:
        return GiveUp(Failure.TOKEN_BUDGET, f"{spent} of {limits.token_budget} tokens are spent")
    if limits.deadline_at is not None and now + timedelta(seconds=again.after_s) >= limits.deadline_at:
        return GiveUp(
            Failure.DEADLINE, f"the deadline, {limits.deadline_at.isoformat(timespec='seconds')}, has no room left"
        )
    if limits.token_budget is None:
        return again
    return Again(min(again.max_completion_tokens, limits.token_budget - spent), again.note, again.after_s)


def _detail(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    text = verdict.outcome.value + (f" ({verdict.cause})" if verdict.cause else "")
    if verdict.errors:
        error = verdict.errors[0]
        text += f": {error.pointer + ' ' if error.pointer else ''}{error.reason}"
    return text[:500]
