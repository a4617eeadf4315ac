"""What ``stepladder lint`` says of tokens: how many each turn's answers may take, counted by the engine's tokenizer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.cli.output import WIDTH, escape, shorten
from stepladder.schemas.errors import StepladderError
from stepladder.schemas.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import Identity
    from stepladder.engine.tokenizer import Uncounted
    from stepladder.lint.compile import Compiled
    from stepladder.lint.estimate import Answers, Estimate
    from stepladder.wiring.settings import Settings

CONNECT_TIMEOUT_S = 2.0
"""Nobody waits for an estimate: an engine that is there at all takes a connection at once."""
LONGEST_NAME = 30  # characters of a state's name in the table


@dataclass(frozen=True, slots=True)
class Budgets:
    """The estimates by document; or ``why_not``, in a sentence. ``tokenizer`` names the model that counted."""

    tokenizer: str | None = None
    why_not: str | None = None
    turns: Mapping[str, list[Estimate]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "tokenizer": self.tokenizer,
            "why_not": self.why_not,
            "turns": [
                {
                    "document": document,
                    "state": one.state,
                    "max_completion_tokens": one.budget,
                    "usual": one.usual,
                    "largest": one.largest,
                    "suggested": one.suggested,
                    "endless": [{"pointer": place, "reason": why} for place, why in one.endless],
                }
                for document, estimates in self.turns.items()
                for one in estimates
            ],
        }


def estimated(settings: Settings, checked: Mapping[str, Compiled]) -> Budgets:
    """Asks the engine that is set, or that a running ``up`` has. Where there is none, nothing is asked and it is said.

    Characters are never taken for tokens: without a tokenizer there is no estimate.
    """
    from stepladder.lint.estimate import answers_of
    from stepladder.wiring.servers import running_engine

    if not any(compiled.machine is not None for compiled in checked.values()):
        return Budgets(why_not="no document is free of errors")
    url = running_engine(settings)
    if url is None:
        return Budgets(why_not="no engine is known whose tokenizer could count; name one with --engine-url")
    answers = {one: answers_of(compiled.machine) for one, compiled in checked.items() if compiled.machine is not None}
    return asyncio.run(_counted(settings, url, answers))


async def _counted(settings: Settings, url: str, answers: Mapping[str, list[Answers]]) -> Budgets:
    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import identify
    from stepladder.engine.pool import Settings as Bounds
    from stepladder.engine.tokenizer import Uncounted
    from stepladder.lint.estimate import estimate

    key = settings.engine_api_key
    secret = None if key is None else key.get_secret_value()
    try:
        async with EngineClient(url, api_key=secret, settings=Bounds(connect_timeout_s=CONNECT_TIMEOUT_S)) as client:
            identity = await identify(client, model=settings.model)
            counts = await _counts(client, identity, [one for found in answers.values() for one in found])
    except StepladderError as error:
        return Budgets(why_not=f"{error}".removesuffix("."))
    if isinstance(counts, Uncounted):
        return Budgets(why_not=counts.reason)
    turns = {document: [estimate(one, counts[one.model]) for one in found] for document, found in answers.items()}
    return Budgets(tokenizer=identity.model, turns=turns)


async def _counts(
    client: EngineClient, identity: Identity, answers: Iterable[Answers]
) -> dict[str | None, dict[str, int]] | Uncounted:
    """The counts of the texts by the model that is to write them."""
    from stepladder.engine.tokenizer import Uncounted, count_tokens

    texts: dict[str | None, list[str]] = {}
    for one in answers:
        texts.setdefault(one.model, []).extend(one.texts)
    found: dict[str | None, dict[str, int]] = {}
    for model, written in texts.items():
        counts = await count_tokens(client, identity, written, model=model)
        if isinstance(counts, Uncounted):
            return counts
        found[model] = counts
    return found


def with_findings(checked: Mapping[str, Compiled], budgets: Budgets, *, hints: bool) -> dict[str, Compiled]:
    """The documents with what the estimates add to their findings."""
    from stepladder.lint.estimate import budget_findings

    found: dict[str, Compiled] = {}
    for document, compiled in checked.items():
        more: list[Finding] = []
        if compiled.machine is not None:
            estimates = budgets.turns.get(document, [])
            more = [
                finding
                for finding in budget_findings(compiled.machine.document, estimates)
                if hints or finding.severity is not Severity.HINT
            ]
        found[document] = (
            replace(compiled, findings=(*compiled.findings, *_placed(document, more))) if more else compiled
        )
    return found


def _placed(document: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """With lines, where the document is a file."""
    from stepladder.schemas.source import Source, read
    from stepladder.wiring.files import read_text
    from stepladder.workflows.load import placed

    source = read(read_text(Path(document))) if Path(document).is_file() else None
    return placed(findings, source) if isinstance(source, Source) else tuple(findings)


def say_budgets(out: Console, budgets: Budgets) -> None:
    """A table in fixed columns; or one line that says why there is none."""
    if budgets.why_not is not None:
        out.print(f"no estimate of tokens (characters are none): {escape(budgets.why_not)}", style="dim")
        return
    for document, estimates in budgets.turns.items():
        if not estimates:
            continue
        width = min(max(len("turn"), *(len(one.state) for one in estimates)), LONGEST_NAME)
        out.print(f"tokens of {escape(document)}'s answers that fit, as {escape(str(budgets.tokenizer))} counts them:")
        out.print(f"  [bold]{'turn':<{width}}  {'usual':>7}  {'largest':>7}  {'budget':>7}  twice the largest[/]")
        for one in estimates:
            line = f"  {shorten(one.state, width):<{width}}  {_number(one.usual)}  {_number(one.largest)}  "
            rest = f"  {_suggestion(one)}"
            short = one.largest is not None and one.budget < one.largest
            budget = f"[yellow]{one.budget:>7}[/]" if short else f"{one.budget:>7}"
            out.print(f"{escape(line)}{budget}{escape(shorten(rest, WIDTH - len(line) - 7))}")


def _number(tokens: int | None) -> str:
    return f"{'-' if tokens is None else tokens:>7}"


def _suggestion(one: Estimate) -> str:
    if one.suggested is not None:
        return str(one.suggested)
    if not one.endless:
        return "no sample of it was found"
    place, why = one.endless[0]
    return f"no end: {place or 'the answer'}: {why}"
