"""The verdict on an answer of a job's turn: the ladder, with the rules and the names as they are in that turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.validation.ladder import Criteria, judge
from stepladder.workflows.lists import names_in, rules_in

if TYPE_CHECKING:
    from stepladder.schemas.answer import Arrival, Verdict
    from stepladder.workflows.job import Attempt, Job, Turn
    from stepladder.workflows.machine import Machine


def judged(
    machine: Machine, job: Job, turn: Turn, attempt: Attempt, arrival: Arrival, *, schema_known_bad: bool = False
) -> Verdict:
    """The ladder's verdict on what arrived for an attempt.

    Of the same bytes it is the same whenever it is made, given what was known of the schema then. Raises KeyError or
    TypeError if the turn's state does not ask the model.
    """
    state = machine.ask(turn.state)
    criteria = Criteria(state.schema, rules_in(job, state), attempt.max_completion_tokens, schema_known_bad)
    return judge(arrival, criteria, names_in(job, state))
