"""How many tokens the answers of each turn may take, and whether its budget holds them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.lint.extent import Answer, extent
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer
from stepladder.workflows.machine import AskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepladder.schemas.document import Workflow
    from stepladder.workflows.machine import Machine

FACTOR = 2
"""Suggested budget over the largest answer. Names, numbers and other alphabets take more tokens than the plain English
of the samples, and under a grammar a model writes line breaks and smaller tokens: answers of one with 135 million
parameters took 1.1 to 2.8 times the tokens that its tokenizer makes of the same JSON on one line."""
END = 1
"""The token that ends an answer counts too."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The largest answer of one turn, for the tokenizer of ``model`` (None: the configured one) to count.

    ``largest`` is None if answers have no limit; ``endless`` then has the places and reasons, see ``Extent``.
    """

    state: str
    model: str | None
    budget: int
    largest: str | None
    endless: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """``largest`` in tokens, including the one that ends the answer; ``budget`` is the document's."""

    state: str
    budget: int
    largest: int | None
    endless: tuple[tuple[str, str], ...] = ()

    @property
    def suggested(self) -> int | None:
        """A ``max_completion_tokens`` that cuts off no valid answer."""
        return None if self.largest is None else FACTOR * self.largest


def answers_of(machine: Machine) -> list[Answers]:
    """For every turn, in the document's order."""
    found: list[Answers] = []
    for state in machine.states.values():
        if isinstance(state, AskState):
            reach = extent(state.schema)
            text = _text(reach.largest)
            found.append(Answers(state.name, state.model, state.max_completion_tokens, text, reach.endless))
    return found


def _text(answer: Answer | None) -> str | None:
    """As models write JSON: on one line, with a space after each comma and colon."""
    return None if answer is None else json.dumps(answer.value, ensure_ascii=False)


def estimate(answers: Answers, tokens: Mapping[str, int]) -> Estimate:
    """``tokens`` has the count of each text."""
    largest = None if answers.largest is None else tokens[answers.largest] + END
    return Estimate(answers.state, answers.budget, largest, answers.endless)


def budget_findings(document: Workflow, estimates: Iterable[Estimate]) -> Iterator[Finding]:
    """A budget that cuts off valid answers is a warning, a schema without a limit a hint."""
    for one in estimates:
        where = _where(document, one.state)
        if one.largest is not None and one.budget < one.largest:
            message = (
                f"a valid answer may take {one.largest} tokens, and is cut off after {one.budget} "
                f"(`max_completion_tokens`)"
            )
            remedy = f"write `max_completion_tokens: {one.suggested}`, or set closer bounds in the schema"
            yield Finding("budget_too_small", where, message, remedy, Severity.WARNING)
        elif one.endless:
            place, why = one.endless[0]
            message = f"a valid answer may take any number of tokens: `{place or '/'}` in it, {why}"
            remedy = "set bounds in the schema, so that a budget can cover every answer"
            yield Finding("budget_unbounded", where, message, remedy, Severity.HINT)


def _where(document: Workflow, name: str) -> str:
    """The pointer to the turn's budget, or to the state that could have one."""
    if getattr(document.states[name], "max_completion_tokens", None) is not None:
        return pointer(("states", name, "max_completion_tokens"))
    if document.max_completion_tokens is not None:
        return "/max_completion_tokens"
    return pointer(("states", name))
