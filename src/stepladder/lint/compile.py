"""From a document and the user's code to a machine, or to everything that is wrong with the document, at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.lint.graph import check_degrade, check_irreversible, check_targets
from stepladder.lint.names import too_early, unknown_members
from stepladder.lint.pieces import Pieces
from stepladder.lint.schemas import Audit
from stepladder.lint.states import compile_state, tools_of
from stepladder.schemas import document as doc
from stepladder.schemas.finding import Severity
from stepladder.schemas.tool import Effect
from stepladder.validation.schema import BadSchema
from stepladder.workflows.machine import LoopLimits, Machine

if TYPE_CHECKING:
    from stepladder.schemas.finding import Finding
    from stepladder.schemas.tool import Kit


@dataclass(frozen=True, slots=True)
class Compiled:
    """``machine`` is None where any finding is an error; a document with warnings has one."""

    machine: Machine | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings for which the document is rejected."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


UNPINNED = Audit()


def compile_workflow(document: doc.Workflow, kit: Kit, audit: Audit | None = UNPINNED) -> Compiled:
    """Check a whole document and compile it. ``kit`` holds the tools and rules that it may name.

    ``audit`` is None for a registered workflow: checks that were added since must not stop its jobs.
    """
    states, pieces = document.states, Pieces(document, kit, audit)
    pieces.findings.extend(check_targets(states, document.start))
    tools = {name: tools_of(pieces, name, state) for name, state in states.items() if isinstance(state, doc.Call)}
    irreversible = {
        name for name, ones in tools.items() if any(tool.effect is Effect.IRREVERSIBLE for tool in ones.values())
    }
    pieces.findings.extend(check_irreversible(states, document.start, irreversible))
    pieces.findings.extend(check_degrade(states))
    input_schema = pieces.schema(document.input, ("input",), name=("input",))
    system = None if document.system is None else pieces.template(document.system, ("system",), roots=("input",))
    compiled = {name: compile_state(pieces, name, state, tools, irreversible) for name, state in states.items()}
    usable = {name: state for name, state in compiled.items() if state is not None}
    if audit is not None:
        without_errors = not _has_error(pieces.findings)
        pieces.findings.extend(unknown_members(pieces.reads, pieces.schemas))
        pieces.findings.extend(too_early(pieces.reads, states) if without_errors else ())
    if isinstance(input_schema, BadSchema) or len(usable) < len(compiled) or _has_error(pieces.findings):
        return Compiled(None, tuple(pieces.findings))
    limits = document.limits
    machine = Machine(
        document=document,
        hash=document.hash(),
        input=input_schema,
        system=system,
        start=document.start,
        states=usable,
        max_turns=limits.max_turns,
        token_budget=limits.token_budget,
        deadline_s=limits.deadline_s,
        loop=None if isinstance(limits.loop, str) else LoopLimits(limits.loop.repeats, limits.loop.stale),
    )
    return Compiled(machine, tuple(pieces.findings))


def _has_error(findings: list[Finding]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)
