"""A turn's life: opened with a question, its attempts judged one by one, accepted or given up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows import lists
from stepladder.workflows.degrade import remnant
from stepladder.workflows.job import Attempt, JobFailure, Turn
from stepladder.workflows.loops import find_circle
from stepladder.workflows.machine import ALWAYS
from stepladder.workflows.names import names_of
from stepladder.workflows.request import history_range
from stepladder.workflows.templates import RenderFailure
from stepladder.workflows.visits import VisitStatus

if TYPE_CHECKING:
    from stepladder.schemas.answer import Verdict
    from stepladder.workflows.builder import TransitionBuilder
    from stepladder.workflows.machine import AskState
    from stepladder.workflows.retry import Again


def say_system(builder: TransitionBuilder) -> JobFailure | None:
    """Puts the system prompt at the head of the transcript, once a job."""
    if builder.machine.system is None:
        return None
    text = builder.machine.system.render(names_of(builder.job))
    if isinstance(text, RenderFailure):
        return JobFailure(Failure.EXPRESSION_ERROR, f"the system prompt: {text.reason}")
    builder.say(0, "system", text)
    return None


def open_turn(builder: TransitionBuilder, state: AskState) -> Turn | JobFailure:
    """Renders the question. A turn whose question cannot be rendered is never opened."""
    text = state.question.render(lists.names_in(builder.job, state))
    if isinstance(text, RenderFailure):
        return JobFailure(Failure.EXPRESSION_ERROR, f"the question of state {state.name}: {text.reason}")
    turn = Turn(
        visit=builder.next_visit(),
        ordinal=builder.job.turn_count + 1,
        state=state.name,
        question=f"{text}\n\n{state.description}",
        opened_at=builder.now,
        schema_hash=state.schema.hash,
    )
    builder.put(turn)
    builder.note(EventKind.TURN_STARTED, {"state": state.name}, turn=turn.ordinal)
    return turn


def open_attempt(builder: TransitionBuilder, turn: Turn, again: Again) -> tuple[Turn, Attempt]:
    """Adds the next attempt to an open turn. Its row is written before its request leaves."""
    state = builder.machine.ask(turn.state)
    first, last = history_range(builder.job.transcript, state.history)
    attempt = Attempt(
        turn=turn.ordinal,
        ordinal=len(turn.attempts) + 1,
        max_completion_tokens=again.max_completion_tokens,
        sampling=state.sampling,
        note=again.note,
        history_from=first,
        history_to=last,
    )
    turn = replace(turn, attempts=(*turn.attempts, attempt), status=VisitStatus.RUNNING)
    builder.put(turn)
    builder.change(due_at=builder.now)
    builder.opened = attempt
    return turn, attempt


def judge(builder: TransitionBuilder, turn: Turn, verdict: Verdict) -> Turn:
    """Writes the verdict on the last attempt."""
    content = verdict.completion.content
    hashed = None if content is None else hashlib.sha256(content).hexdigest()
    attempt = replace(turn.attempts[-1], verdict=verdict, content_hash=hashed)
    attempts = (*turn.attempts[:-1], attempt)
    turn = replace(turn, attempts=attempts, outcome=verdict.outcome, status=VisitStatus.BACKING_OFF)
    builder.put(turn)
    builder.judged(attempt)
    usage = verdict.completion.usage
    builder.change(tokens=builder.job.tokens + (0 if usage is None else usage.total))
    abandoned = verdict.outcome is Outcome.TRANSPORT and verdict.cause == Cause.ABANDONED
    kind = EventKind.ATTEMPT_ABANDONED if abandoned else EventKind.ATTEMPT_JUDGED
    data = {"outcome": verdict.outcome.value, "cause": verdict.cause}
    builder.note(kind, data, turn=turn.ordinal, attempt=attempt.ordinal)
    return turn


def accept(builder: TransitionBuilder, turn: Turn) -> str | JobFailure | None:
    """Takes a valid answer into the transcript and follows its edge. An action without a listed transition is denied.

    None if the answer is an element of a list that needs another one.
    """
    state = builder.machine.ask(turn.state)
    verdict = turn.attempts[-1].verdict
    if verdict is None or verdict.completion.content is None:
        raise ValueError("an accepted turn has an answer")
    output = verdict.output
    word = output.get("action") if isinstance(output, Mapping) else None
    action = word if isinstance(word, str) else None
    turn = turn.close(builder.now, output=output, action=action)
    builder.put(turn)
    builder.say(turn.ordinal, "user", turn.question)
    builder.say(turn.ordinal, "assistant", verdict.completion.content.decode())
    builder.note(EventKind.TURN_ACCEPTED, {"state": state.name, "action": action}, turn=turn.ordinal)
    if state.loop and builder.machine.loop is not None:
        circle = find_circle([visit for visit in builder.job.visits if not visit.carried], builder.machine.loop)
        if circle is not None:
            rule = f"limits.loop is {{repeats: {builder.machine.loop.repeats}, stale: {builder.machine.loop.stale}}}"
            return JobFailure(Failure.LOOP, f"state {state.name}: {circle}; {rule}")
    if state.each is not None:
        return lists.next_state(builder, state)
    if state.always is not None:
        return builder.follow(ALWAYS, state.always)
    if action is None or action not in state.edges:
        listed = ", ".join(state.edges) or "none"
        said = "no action" if word is None else f"the action {str(word)[:100]!r}"
        return JobFailure(Failure.TRANSITION_DENIED, f"state {state.name} was given {said}; its edges are {listed}")
    return builder.follow(action, state.edges[action])


def give_up(builder: TransitionBuilder, turn: Turn, failure: JobFailure) -> None:
    """Closes a turn that got no valid answer. A degraded result does not change its failure."""
    kept = remnant(builder.machine.ask(turn.state), turn, failure.kind)
    builder.put(turn.close(builder.now, degraded=kept))
    builder.note(EventKind.TURN_FAILED, {"failure": failure.kind.value, "detail": failure.detail}, turn=turn.ordinal)
    if kept is not None:
        data = {"outcome": kept.outcome.value, "lost": len(kept.lost)}
        builder.note(EventKind.TURN_DEGRADED, data, turn=turn.ordinal, attempt=kept.attempt)
