"""The API and the dashboard on a real socket over a real database, and jobs made by the real runner."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stepladder.api.app import create_app
from stepladder.api.serve import serve
from stepladder.dashboard.app import make_dashboard
from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.queries.reads import Reads
from stepladder.runner.drive import Driver
from stepladder.runner.machines import Machines, compiled
from stepladder.runner.runner import Runner
from stepladder.schemas.errors import EffectUnknownError
from stepladder.schemas.tool import Effect, Kit, Tool
from stepladder.services.submission import publish, submit
from stepladder.testing import ScriptedEngine, eventually
from stepladder.workflows.load import Loaded, load_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from uuid import UUID

    from stepladder.api.access import ApiKey
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.responses import Job

BILL = """
name: usage-bill
version: 1
input: {type: object, properties: {team: {type: string, maxLength: 40}}, required: [team], additionalProperties: false}
system: You are a billing assistant. Answer each request with one JSON object.
start: usage
limits: {max_turns: 20, token_budget: 8000, deadline_s: 600}
states:
  usage:
    ask: "Call usage_query for team {{ input.team }}."
    output:
      type: object
      properties: {action: {enum: [usage_query]}, team: {type: string, maxLength: 40}}
      required: [action, team]
      additionalProperties: false
    next: {usage_query: run_usage}
  run_usage:
    tool: usage_query
    arguments: {team: "turns.usage.team"}
    next: {ok: bill, error: broken}
  bill:
    ask: "The team used {{ tools.run_usage.hours }} hours at 3 dollars. Give hours and total."
    output:
      type: object
      properties: {hours: {type: integer, minimum: 0}, total: {type: integer, minimum: 0, maximum: 100000}}
      required: [hours, total]
      additionalProperties: false
    rules:
      - {id: arithmetic, check: "output.total == output.hours * 3", pointer: /total, reason: "must be hours times 3"}
    next: approve
  approve:
    wait:
      signal: approval
      schema: {type: object, properties: {action: {enum: [approve, refuse]}, by: {type: string}}, required: [action]}
      show: {total: "turns.bill.total"}
      timeout_s: 86400
    next: {approve: done, refuse: refused, timeout: refused}
  done: {end: succeeded, result: {total: "turns.bill.total"}}
  refused: {end: failed}
  broken: {end: failed}
"""
ESSAY = """
name: essay
version: 1
start: write
states:
  write:
    ask: "Write about ladders."
    output:
      type: object
      properties: {text: {type: string}}
      required: [text]
      additionalProperties: false
    max_completion_tokens: 4000
    next: done
  done: {end: succeeded}
"""
PAYING = """
name: paying
version: 1
start: confirm
states:
  confirm:
    wait:
      signal: confirmation
      schema: {type: object, properties: {action: {enum: ["yes", "no"]}}, required: [action]}
    next: {"yes": pay, "no": left}
  pay: {tool: pay, effect: irreversible, arguments: {amount: "36"}, next: {ok: done, error: left}}
  done: {end: succeeded}
  left: {end: failed}
"""
TEAM: JsonObject = {"type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"]}
AMOUNT: JsonObject = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
KIT = Kit(
    {
        "usage_query": Tool("usage_query", Effect.READ, TEAM, lambda team: {"team": team, "hours": 12}),
        "pay": Tool("pay", Effect.IRREVERSIBLE, AMOUNT, lambda amount: {"paid": amount}, returns={"type": "object"}),
    },
    {},
)
WHY = "the bank broke the connection off"
"""The error of a payment that may or may not have taken effect."""

USAGE: Json = {"action": "usage_query", "team": "search"}
WRONG: Json = {"hours": 12, "total": 35}
RIGHT: Json = {"hours": 12, "total": 36}


@dataclass
class Site:
    """Where it is served, and its database. ``notified`` are the jobs that workers were told of."""

    url: str
    database: Database
    store: Store
    reads: Reads
    end: Callable[[], object]
    notified: list[UUID] = field(default_factory=list)

    async def submit(self, document: str = BILL, value: Json = None, **more: Any) -> UUID:
        """Publishes the workflow if needed and writes a job of it."""
        loaded = load_document(document)
        assert isinstance(loaded, Loaded), loaded
        machine = compiled(loaded.document, KIT)
        await publish(self.store, machine)
        given = {"team": "search"} if value is None and document == BILL else value
        return (await submit(self.store, machine, {} if given is None else given, datetime.now(UTC), **more)).id

    @asynccontextmanager
    async def worker(
        self, *answers: Any, signals: Mapping[str, Sequence[Json]] | None = None, kit: Kit = KIT, **script: Any
    ) -> AsyncIterator[Driver]:
        """Drives jobs against a scripted engine, as a worker with these tools would."""
        async with ScriptedEngine(answers, **script) as engine, EngineClient(engine.url) as client:
            runner = Runner(self.store, Machines(self.store, kit), client, await identify(client))
            yield Driver(runner, self.store, self.reads, signals or {})

    async def drive(self, job_id: UUID, *answers: Any, signals: Any = None) -> None:
        async with self.worker(*answers, signals=signals) as driver:
            await driver.drive(job_id)

    async def until(self, job_id: UUID, condition: Callable[[Job], bool]) -> None:
        async def holds() -> bool:
            job = await self.reads.overview(job_id)
            return job is not None and condition(job)

        await eventually(holds, 30, what="the job's condition")

    async def run(self, *answers: Any, document: str = BILL, signals: Any = None, **more: Any) -> UUID:
        """A job of the workflow, as far as these answers and signals take it."""
        job_id = await self.submit(document, **more)
        await self.drive(job_id, *answers, signals=signals)
        return job_id

    async def run_unsettled(self) -> UUID:
        """A job whose payment may or may not have taken effect."""
        broken = replace(KIT.tools["pay"], function=_broken_off)
        job_id = await self.submit(PAYING)
        async with self.worker(signals={"confirmation": [{"action": "yes"}]}, kit=Kit({"pay": broken})) as driver:
            await driver.drive(job_id)
        return job_id


def _broken_off(**_: Any) -> None:
    raise EffectUnknownError(WHY)


@asynccontextmanager
async def open_site(
    database_url: str, *, keys: Sequence[ApiKey] = (), heartbeat_s: float = 15.0, kit: Kit = KIT
) -> AsyncIterator[Site]:
    """The real application with the dashboard, served until the context ends."""
    notified: list[UUID] = []

    def notify(due: Sequence[UUID]) -> None:
        notified.extend(due)

    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(database_url))
        store, reads = Store(database), Reads(database)
        app = create_app(
            database,
            store,
            reads,
            kit,
            notify,
            keys=keys,
            dashboard=lambda parts: make_dashboard(parts, database),
            heartbeat_s=heartbeat_s,
        )
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(app, "127.0.0.1", 0, started=started.set_result))
        await asyncio.wait((serving, started), return_when=asyncio.FIRST_COMPLETED)
        try:
            yield Site(
                started.result() if started.done() else await started, database, store, reads, serving.cancel, notified
            )
        finally:
            serving.cancel()
            await asyncio.wait((serving,))
