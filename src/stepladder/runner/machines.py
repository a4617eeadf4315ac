"""Compiled machines by workflow and version, cached for the life of the process: a published version never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.lint.compile import UNPINNED, compile_workflow
from stepladder.runner.rules import bounded
from stepladder.schemas.document import Workflow
from stepladder.schemas.finding import BadDocumentError
from stepladder.workflows.machine import AskState

if TYPE_CHECKING:
    from stepladder.lint.schemas import Audit
    from stepladder.models.records import WorkflowRow
    from stepladder.models.store import Store
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit
    from stepladder.workflows.machine import Machine


class Machines:
    """``kit`` holds the tools and rules of this process, which documents name; its rules are bounded."""

    def __init__(self, store: Store, kit: Kit) -> None:
        self.kit = bounded(kit)
        self._store = store
        self._compiled: dict[tuple[str, int, str | None], Machine] = {}

    async def get(self, name: str, version: int, variant: str | None = None) -> Machine:
        """The machine of a published version, or of a variant of it: a changed document, by its hash.

        Raises ``BadDocumentError`` where this process lacks a tool or a rule that the document names.
        """
        known = self._compiled.get((name, version, variant))
        if known is not None:
            return known
        row = await self._store.workflow(name, version)
        if row is None:
            raise LookupError(f"workflow {name} {version} of a job is not in the store")
        return await self.of_row(row, variant)

    async def of_row(self, row: WorkflowRow, variant: str | None = None) -> Machine:
        """The same of a row that was read already."""
        known = self._compiled.get((row.name, row.version, variant))
        if known is None:
            document = row.document if variant is None else await self._store.variant(variant)
            known = compiled(Workflow.model_validate(document), self.kit, audit=None)
            await self._store.keep_schemas(output_schemas(known))
            self._compiled[row.name, row.version, variant] = known
        return known


def output_schemas(machine: Machine) -> dict[str, Json]:
    """The output schemas of all turns by their hash, so that every request can be built again."""
    return {state.schema.hash: state.schema.schema for state in machine.states.values() if isinstance(state, AskState)}


def compiled(document: Workflow, kit: Kit, audit: Audit | None = UNPINNED) -> Machine:
    """The machine of a document. Raises ``BadDocumentError`` with every error at once."""
    result = compile_workflow(document, kit, audit)
    if result.machine is None:
        raise BadDocumentError(f"workflow {document.name} {document.version}", result.errors)
    return result.machine
