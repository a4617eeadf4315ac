"""The degraded result of a failed turn, if its document says ``degrade: true``.

It is stored in the turn's record only: the failure is handled as it would be without it, and no edge, rule,
template, expression, tool or later question ever sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas.degraded import Degraded, Loss
from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import Outcome, RungState
from stepladder.validation.salvage import SALVAGED, salvage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.answer import Verdict
    from stepladder.schemas.outcomes import Rungs
    from stepladder.workflows.job import Turn
    from stepladder.workflows.machine import AskState

GIVEN_UP = (Failure.ATTEMPTS_EXHAUSTED, Failure.TOKEN_BUDGET, Failure.DEADLINE)
"""The failures in which a limit was reached. If the engine or the model declined, there is no degraded result."""
TRIES = 8
"""Answers that are tried, so that a turn of a hundred attempts does not take long."""


def remnant(state: AskState, turn: Turn, failure: Failure) -> Degraded | None:
    """The readable part of the answer that passed the most rungs (the newest of equals), or None."""
    if not state.degrade or failure not in GIVEN_UP:
        return None
    answers = sorted(_answers(turn), key=lambda answer: (_passed(answer[1].rungs), answer[0]), reverse=True)
    for ordinal, verdict, content in answers[:TRIES]:
        if (salvaged := salvage(content, state.schema, verdict.outcome)) is not None:
            return Degraded(salvaged.value, (*salvaged.lost, *_unsure(state, verdict)), ordinal, verdict.outcome)
    return None


def _answers(turn: Turn) -> Iterator[tuple[int, Verdict, bytes]]:
    for attempt in turn.attempts:
        verdict = attempt.verdict
        if verdict is not None and verdict.outcome in SALVAGED and verdict.completion.content is not None:
            yield attempt.ordinal, verdict, verdict.completion.content


def _passed(rungs: Rungs) -> int:
    return sum(rung is RungState.PASSED for rung in (rungs.termination, rungs.parse, rungs.schema, rungs.semantic))


def _unsure(state: AskState, verdict: Verdict) -> Iterator[Loss]:
    """Which rules are broken, or that they were never evaluated."""
    if verdict.outcome is Outcome.SEMANTIC:
        for error in verdict.errors:
            yield Loss(error.pointer, f"breaks the rule {error.source}: {error.reason}")
    elif state.rules:
        yield Loss("", f"the turn's rules were never evaluated: {', '.join(rule.id for rule in state.rules)}"[:1000])
