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
from stepladder.workflows.job import Attempt, Turn
from stepladder.workflows.loops import find_circle
from stepladder.workflows.machine import ALWAYS
from stepladder.workflows.move import Fault
from stepladder.workflows.names import names_of
from stepladder.workflows.request import history_range
from stepladder.workflows.templates import RenderFailure

if TYPE_CHECKING:
    from stepladder.schemas.answer import Verdict
    from stepladder.workflows.machine import AskState
    from stepladder.workflows.move import Move
    from stepladder.workflows.retry import Again


def say_system(move: Move) -> Fault | None:
    """Puts the system prompt at the head of the transcript, once a job."""
    if move.machine.system is None:
        return None
    text = move.machine.system.render(names_of(move.job))
    if isinstance(text, RenderFailure):
        return Fault(Failure.EXPRESSION_ERROR, f"the system prompt: {text.reason}")
    move.say(0, "system", text)
    return None


def open_turn(move: Move, state: AskState) -> Turn | Fault:
    """Renders the question. A turn whose question cannot be rendered is never opened."""
    text = state.question.render(lists.names_in(move.job, state))
    if isinstance(text, RenderFailure):
        return Fault(Failure.EXPRESSION_ERROR, f"the question of state {state.name}: {text.reason}")
    turn = Turn(
        visit=move.next_visit(),
        ordinal=move.job.turn_count + 1,
        state=state.name,
        question=f"{text}\n\n{state.description}",
        opened_at=move.now,
        schema_hash=state.schema.hash,
    )
    move.put(turn)
    move.note(EventKind.TURN_STARTED, {"state": state.name}, turn=turn.ordinal)
    return turn


def open_attempt(move: Move, turn: Turn, again: Again) -> tuple[Turn, Attempt]:
    """Adds the next attempt to an open turn. Its row is written before its request leaves."""
    state = move.machine.ask(turn.state)
    first, last = history_range(move.job.transcript, state.history)
    attempt = Attempt(
        turn=turn.ordinal,
        ordinal=len(turn.attempts) + 1,
        max_completion_tokens=again.max_completion_tokens,
        sampling=state.sampling,
        note=again.note,
        history_from=first,
        history_to=last,
    )
    turn = replace(turn, attempts=(*turn.attempts, attempt))
    move.put(turn)
    move.change(due_at=move.now)
    move.opened = attempt
    return turn, attempt


def judge(move: Move, turn: Turn, verdict: Verdict) -> Turn:
    """Writes the verdict on the last attempt."""
    content = verdict.completion.content
    hashed = None if content is None else hashlib.sha256(content).hexdigest()
    attempt = replace(turn.attempts[-1], verdict=verdict, content_hash=hashed)
    turn = replace(turn, attempts=(*turn.attempts[:-1], attempt), outcome=verdict.outcome)
    move.put(turn)
    move.judged(attempt)
    usage = verdict.completion.usage
    move.change(tokens=move.job.tokens + (0 if usage is None else usage.total))
    abandoned = verdict.outcome is Outcome.TRANSPORT and verdict.cause == Cause.ABANDONED
    kind = EventKind.ATTEMPT_ABANDONED if abandoned else EventKind.ATTEMPT_JUDGED
    data = {"outcome": verdict.outcome.value, "cause": verdict.cause}
    move.note(kind, data, turn=turn.ordinal, attempt=attempt.ordinal)
    return turn


def accept(move: Move, turn: Turn) -> str | Fault | None:
    """Takes a valid answer into the transcript and follows its edge. What no edge lists is denied.

    None where the answer is an element of a list that wants another one.
    """
    state = move.machine.ask(turn.state)
    verdict = turn.attempts[-1].verdict
    if verdict is None or verdict.completion.content is None:
        raise ValueError("an accepted turn has an answer")
    output = verdict.output
    word = output.get("action") if isinstance(output, Mapping) else None
    action = word if isinstance(word, str) else None
    turn = replace(turn, output=output, action=action, closed_at=move.now)
    move.put(turn)
    move.say(turn.ordinal, "user", turn.question)
    move.say(turn.ordinal, "assistant", verdict.completion.content.decode())
    move.note(EventKind.TURN_ACCEPTED, {"state": state.name, "action": action}, turn=turn.ordinal)
    if state.loop and move.machine.loop is not None:
        circle = find_circle([visit for visit in move.job.visits if not visit.carried], move.machine.loop)
        if circle is not None:
            rule = f"limits.loop is {{repeats: {move.machine.loop.repeats}, stale: {move.machine.loop.stale}}}"
            return Fault(Failure.LOOP, f"state {state.name}: {circle}; {rule}")
    if state.each is not None:
        return lists.onward(move, state)
    if state.always is not None:
        return move.follow(ALWAYS, state.always)
    if action is None or action not in state.edges:
        listed = ", ".join(state.edges) or "none"
        said = "no action" if word is None else f"the action {str(word)[:100]!r}"
        return Fault(Failure.TRANSITION_DENIED, f"state {state.name} was given {said}; its edges are {listed}")
    return move.follow(action, state.edges[action])


def give_up(move: Move, turn: Turn, fault: Fault) -> None:
    """Closes a turn that got no valid answer. Whatever is kept of it changes nothing about its failure."""
    kept = remnant(move.machine.ask(turn.state), turn, fault.failure)
    move.put(replace(turn, degraded=kept, closed_at=move.now))
    move.note(EventKind.TURN_FAILED, {"failure": fault.failure.value, "detail": fault.detail}, turn=turn.ordinal)
    if kept is not None:
        data = {"outcome": kept.outcome.value, "lost": len(kept.lost)}
        move.note(EventKind.TURN_DEGRADED, data, turn=turn.ordinal, attempt=kept.attempt)
