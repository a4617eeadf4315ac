"""The token estimates of ``stepladder lint``: how many tokens each turn's answers take, by the engine's tokenizer."""

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

CONNECT_TIMEOUT_S = 2.0  # a running engine accepts a connection at once
MAX_NAME = 30  # characters of a state's name in the table


@dataclass(frozen=True, slots=True)
class Budgets:
    """The estimates by document, or ``why_not``. ``tokenizer`` is the model whose tokenizer counted."""

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
                    "largest": one.largest,
                    "suggested": one.suggested,
                    "endless": [{"pointer": place, "reason": why} for place, why in one.endless],
                }
                for document, estimates in self.turns.items()
                for one in estimates
            ],
        }


def estimate_budgets(settings: Settings, checked: Mapping[str, Compiled]) -> Budgets:
    """Estimates by the tokenizer of the configured engine, or of a running ``up``; without one there are none."""
    from stepladder.lint.estimate import answers_of
    from stepladder.wiring.servers import running_engine

    if not any(compiled.machine is not None for compiled in checked.values()):
        return Budgets(why_not="fix the errors first")
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
    """The tokens of each text, by the model that will write it."""
    from stepladder.engine.tokenizer import Uncounted, count_tokens

    texts: dict[str | None, list[str]] = {}
    for one in answers:
        texts.setdefault(one.model, []).extend([] if one.largest is None else [one.largest])
    found: dict[str | None, dict[str, int]] = {}
    for model, written in texts.items():
        counts = await count_tokens(client, identity, written, model=model)
        if isinstance(counts, Uncounted):
            return counts
        found[model] = counts
    return found


def add_findings(checked: Mapping[str, Compiled], budgets: Budgets, *, hints: bool) -> dict[str, Compiled]:
    """The documents, with findings about budgets added."""
    from stepladder.lint.estimate import budget_findings

    found: dict[str, Compiled] = {}
    for document, compiled in checked.items():
        if compiled.machine is not None:
            added = budget_findings(compiled.machine.document, budgets.turns.get(document, []))
            shown = [finding for finding in added if hints or finding.severity is not Severity.HINT]
            compiled = replace(compiled, findings=(*compiled.findings, *_placed(document, shown)))
        found[document] = compiled
    return found


def _placed(document: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with line numbers, if the document is a file."""
    from stepladder.schemas.source import Source, read
    from stepladder.wiring.files import read_text
    from stepladder.workflows.load import placed

    source = read(read_text(Path(document))) if Path(document).is_file() else None
    return placed(findings, source) if isinstance(source, Source) else tuple(findings)


def print_budgets(out: Console, budgets: Budgets) -> None:
    """Print a table in fixed columns, or one line that says why there is none."""
    if budgets.why_not is not None:
        out.print(f"Token estimate skipped: {escape(budgets.why_not)}", style="dim")
        return
    for document, estimates in budgets.turns.items():
        if not estimates:
            continue
        width = min(max(len("turn"), *(len(one.state) for one in estimates)), MAX_NAME)
        out.print(f"Tokens of valid answers to {escape(document)}, counted by {escape(str(budgets.tokenizer))}:")
        out.print(f"  [bold]{'turn':<{width}}  {'largest':>7}  {'budget':>7}  twice the largest[/]")
        for one in estimates:
            line = f"  {shorten(one.state, width):<{width}}  {_number(one.largest)}  "
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
        return "no sample was found"
    place, why = one.endless[0]
    return f"unbounded: {place or 'the answer'}: {why}"
