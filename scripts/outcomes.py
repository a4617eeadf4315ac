"""The page of all outcomes: for each an example, the rung that catches it, and what the retry does.

Nothing of it is written by hand. The order is the ladder's, the causes are those there are, each example is one of the
project's specimens that goes through the ladder while the page is made, and what follows is what the retry policy
decides about its verdict. Run by ``scripts/outcomes``, which writes ``docs/outcomes.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli.output import printable, shorten
from stepladder.judge.specimens import Case, Specimens
from stepladder.schemas.answer import Lost
from stepladder.schemas.outcomes import CAUSES, Cause, Outcome, RungState
from stepladder.schemas.tool import Kit
from stepladder.validation.ladder import RUNGS as RUNGS_OF
from stepladder.validation.parse import MAX_BYTES
from stepladder.workflows.job import Attempt
from stepladder.workflows.retry import Again, GiveUp, RetryLimits, decide, wants_fresh_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.answer import Received, Verdict
    from stepladder.schemas.outcomes import Rungs
    from stepladder.workflows.retry import Decision

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "outcomes.md"
SPECIMENS = ROOT / "tests" / "unit" / "validation" / "specimens.jsonl"

EXAMPLES = (
    "lost-connect", "lost-timeout", "lost-disconnected", "too-many-requests", "overloaded", "gateway-page", "given-up",
    "body-cut", "stream-error-event", "stream-without-finish", "lost-abandoned", "cut", "cut-while-thinking",
    "runaway-digits", "schema-refused-1", "prompt-too-long", "no-such-model", "wrong-key", "declined", "filtered",
    "null", "answer-in-the-thoughts", "called-a-tool", "fence", "sentence-before", "sentence-after", "curly",
    "comma-in-object", "tool-markup-1", "name-twice", "not-a-number", "overflow", "half-a-character", "nested",
    "no-document", "wrong-type", "missing", "too-heavy", "first-by-pointer", "sum-wrong", "two-broken-in-order",
    "plain",
)  # fmt: skip
"""The specimens that stand on the page. Each outcome and each closed cause has one, or there is no page."""

TOO_LARGE = {"id": "too-large", "schema": True, "response": {"status": 200, "body": {
    "choices": [{"message": {"content": json.dumps("x" * MAX_BYTES)}, "finish_reason": "stop"}]}}}  # fmt: skip
"""Made here: no file wants a specimen of a megabyte."""

HEAD = """\
<!-- Made by scripts/outcomes out of the code, and compared with it by a test: change the code instead. -->
# Outcomes

Every attempt gets exactly one outcome. The ladder goes down this list and stops at the first line that applies,
whatever else is wrong with the answer: one that was cut off and so does not parse is a `truncation`.
"""
EACH = """\
## An example of each

Each is one of the project's specimens (`tests/unit/validation/specimens.jsonl`), put through the ladder and then
through the retry policy, as the first of three attempts. The last column names what the attempt counts against:
`attempts` or `transport` of the document's `retry`.
"""
CAUSE = """\
The cause of a `schema_violation` is the keyword of the first error by pointer, that of a `semantic` the id of the first
broken rule in the document's order. All errors of the latest answer are told, and none of an earlier one.
"""
ENDS = """\
## Where it ends

Each bound binds by itself, and the failure says which one it was.
"""

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ATTEMPTS = 3
LONGEST = 90
RUNGS = ("termination", "parse", "schema", "semantic")
PRECEDENCE = [*(outcome for outcome in Outcome if outcome is not Outcome.VALID), Outcome.VALID]


@dataclass(frozen=True, slots=True)
class Example:
    """A specimen, and what the ladder made of it."""

    case: Case
    verdict: Verdict

    @property
    def attempt(self) -> Attempt:
        content = self.verdict.completion.content
        hashed = None if content is None else hashlib.sha256(content).hexdigest()
        budget = self.case.criteria.max_completion_tokens
        return Attempt(1, 1, budget, content_hash=hashed, verdict=self.verdict)

    def decide(self, limits: RetryLimits, *before: Attempt, spent: int = 0) -> Decision:
        return decide((*before, self.attempt), limits, spent, NOW, "job/1")


def examples() -> list[Example]:
    """In the order of the page. Raises ``LookupError`` where an outcome or a cause would be missing."""
    reader = Specimens(Kit({}, {}))
    cases: dict[str, Case] = {}
    for line in (*SPECIMENS.read_bytes().splitlines(), json.dumps(TOO_LARGE).encode()):
        case = reader.read(line)
        if not isinstance(case, Case):
            raise LookupError(f"a specimen cannot be read: {case}")
        cases[str(case.id)] = case
    found = [Example(cases[name], cases[name].judge()) for name in (*EXAMPLES, str(TOO_LARGE["id"]))]
    shown = {(example.verdict.outcome, example.verdict.cause) for example in found}
    causes = {(outcome, cause) for outcome, listed in CAUSES.items() for cause in listed}
    lacking = causes - shown or set(Outcome) - {outcome for outcome, _ in shown}
    if lacking:
        raise LookupError(f"no example on the page shows {sorted(lacking)}")
    order = [(outcome, cause) for outcome in PRECEDENCE for cause in CAUSES.get(outcome, ())]
    return sorted(found, key=lambda example: (_rank(example), _cause_rank(example, order)))


def _rank(example: Example) -> int:
    return PRECEDENCE.index(example.verdict.outcome)


def _cause_rank(example: Example, order: list[tuple[Outcome, Cause]]) -> int:
    key = (example.verdict.outcome, example.verdict.cause)
    return next((rank for rank, known in enumerate(order) if known == key), 0)


def page() -> str:
    """The whole page."""
    found = examples()
    return "\n".join((HEAD, *_precedence(), *_table(found), *_bounds(found), ""))


def _precedence() -> Iterator[str]:
    yield "| | outcome | " + " | ".join(RUNGS) + " |"
    yield "|---|---|" + "---|" * len(RUNGS)
    for nth, outcome in enumerate(PRECEDENCE, 1):
        yield f"| {nth} | `{outcome}` | {_rungs(RUNGS_OF[outcome])} |"
    yield ""


def _rungs(rungs: Rungs) -> str:
    return " | ".join(getattr(rungs, name).value.replace("_", " ") for name in RUNGS)


def _table(found: list[Example]) -> Iterator[str]:
    yield EACH
    yield "| outcome | cause | what arrived | caught by | what follows | counts as |"
    yield "|---|---|---|---|---|---|"
    for example in found:
        outcome, cause = example.verdict.outcome, example.verdict.cause
        cells = (
            f"`{outcome}`", f"`{cause}`" if cause else "", _arrived(example), _caught_by(example.verdict.rungs),
            _follows(example), _counts_as(example),
        )  # fmt: skip
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield CAUSE


def _arrived(example: Example) -> str:
    """What came, in short: its finish reason and text, or what there was in their place."""
    verdict, arrival = example.verdict, example.case.arrival
    if isinstance(arrival, Lost):
        return "no whole answer"
    completion = verdict.completion
    if arrival.status >= 300 or completion.finish_reason is None:
        return _body(arrival)
    parts = [f"finish reason {_code(completion.finish_reason)}"]
    if completion.reasoning is not None:
        parts.append(f"thoughts {_code(completion.reasoning)}")
    if completion.refusal is not None:
        parts.append(f"refusal {_code(completion.refusal)}")
    if completion.tool_calls:
        parts.append("a tool call")
    content = completion.content
    parts.append("no text" if content is None else f"text {_code(content.decode('utf-8', 'replace'))}")
    return ", ".join(parts)


def _body(arrival: Received) -> str:
    text = arrival.body.decode("utf-8", "replace").strip()
    if arrival.status < 300:  # what is wrong with it stands at its end
        return f"HTTP {arrival.status}, ending " + _code(text[-LONGEST:])
    try:
        error = json.loads(text)
        message = error["error"]["message"] if isinstance(error.get("error"), dict) else error["message"]
    except (ValueError, KeyError, TypeError, AttributeError):
        message = text
    return f"HTTP {arrival.status}" + (f", {_code(str(message))}" if message else "")


def _code(text: str, most: int = LONGEST) -> str:
    """A text as code in a table's cell: Markdown fences it with more backticks than stand in it."""
    shown = printable(shorten(text, most)).replace("\n", "\\n").replace("\t", "\\t").replace("|", "\\|")
    runs = re.findall("`+", shown)
    fence = "`" * (1 + max(map(len, runs), default=0))
    return f"{fence} {shown} {fence}" if runs else f"{fence}{shown}{fence}"


def _caught_by(rungs: Rungs) -> str:
    failed = [name for name in RUNGS if getattr(rungs, name) is RungState.FAILED]
    if failed:
        return failed[0]
    return "no rung: all passed" if rungs.semantic is RungState.PASSED else "before any rung"


def _follows(example: Example) -> str:
    """What the policy decides, in words."""
    if example.verdict.ok:
        return "the machine moves"
    match example.decide(RetryLimits(ATTEMPTS)):
        case GiveUp(failure):
            return f"the turn fails at once: `{failure}`"
        case Again() as again:
            return _again(example.attempt, again)


def _again(attempt: Attempt, again: Again) -> str:
    told = [line.removeprefix("- ") for line in again.note.strip().splitlines()[1:]]
    same = not told and again.max_completion_tokens == attempt.max_completion_tokens
    text = "the same request again" if same else "asked again"
    if again.after_s > 0:
        text += " after a backoff"
    if wants_fresh_connection((attempt, Attempt(1, 2, again.max_completion_tokens))):
        text += " on a fresh connection"
    if again.max_completion_tokens != attempt.max_completion_tokens:
        text += f" with {again.max_completion_tokens} tokens in place of {attempt.max_completion_tokens}"
    return text + (", told " + "; ".join(_code(line, 2 * LONGEST) for line in told) if told else "")


def _counts_as(example: Example) -> str:
    """Which bound ends the turn when there is room for no other such attempt."""
    if example.verdict.ok or isinstance(example.decide(RetryLimits(ATTEMPTS)), GiveUp):
        return ""
    if isinstance(example.decide(RetryLimits(1)), GiveUp):
        return "`attempts`"
    return "`transport`" if isinstance(example.decide(RetryLimits(ATTEMPTS, transport=0)), GiveUp) else "neither"


def _bounds(found: list[Example]) -> Iterator[str]:
    by_cause = {example.verdict.cause: example for example in found}
    wrong, lost, cut = by_cause["sum"], by_cause[Cause.CONNECT], by_cause[Cause.BUDGET]
    late = NOW + timedelta(seconds=0.1)
    yield ENDS
    yield "| what binds | `failure` | `failure_detail` |"
    yield "|---|---|---|"
    ends = (
        ("`retry.attempts`", wrong.decide(RetryLimits(1))),
        ("the same answer twice", wrong.decide(RetryLimits(ATTEMPTS), wrong.attempt)),
        ("`retry.transport`", lost.decide(RetryLimits(ATTEMPTS, transport=0))),
        ("the model's own limit", cut.decide(RetryLimits(ATTEMPTS, max_model_len=cut.attempt.max_completion_tokens))),
        ("`limits.token_budget`", wrong.decide(RetryLimits(ATTEMPTS, token_budget=1000), spent=1000)),
        ("`limits.deadline_s`", lost.decide(RetryLimits(ATTEMPTS, deadline_at=late))),
    )
    for what, decision in ends:
        if not isinstance(decision, GiveUp):
            raise TypeError(f"{what} does not bind: {decision}")
        yield f"| {what} | `{decision.failure}` | {_code(decision.detail, 2 * LONGEST)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
