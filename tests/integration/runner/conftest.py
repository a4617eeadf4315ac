"""What the runner's tests share: a store, a scripted engine, and jobs of small workflows between the two."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import Identity, identify
from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.queries.reads import Reads
from stepladder.runner.drive import Driver
from stepladder.runner.machines import Machines, compiled
from stepladder.runner.runner import Runner
from stepladder.schemas.actor import Actor
from stepladder.schemas.document import Workflow
from stepladder.sdk import kit
from stepladder.services.submission import publish, submit
from stepladder.testing import ScriptedEngine
from stepladder.workflows.advance import advance
from stepladder.workflows.events import Claimed
from stepladder.workflows.transition import Ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from uuid import UUID

    from stepladder.engine.pool import Settings
    from stepladder.models.records import Claim
    from stepladder.schemas.history import Attempt
    from stepladder.schemas.responses import Job, OpenSettlement
    from stepladder.testing import Line
    from stepladder.workflows.transition import Transition

_versions = itertools.count(1)

NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["n"],
    "additionalProperties": False,
}
ENDS = {"done": {"end": "succeeded"}, "broken": {"end": "failed"}}


def asking(**fields: Any) -> dict[str, Any]:
    """A state that asks for a number and goes on to ``done``."""
    return {"ask": "Which number?", "output": NUMBER, "next": "done"} | fields


@dataclass
class Works:
    """One store, one engine, and any number of runners over both."""

    database_url: str
    store: Store
    reads: Reads
    engine: ScriptedEngine
    client: EngineClient
    identity: Identity

    def runner(self, **options: Any) -> Runner:
        """A runner as another worker process would have one: it shares nothing but the servers."""
        return Runner(self.store, Machines(self.store, kit.registered()), self.client, self.identity, **options)

    async def submit(
        self, states: Mapping[str, Any], value: Any = None, *, scopes: frozenset[str] | None = None, **fields: Any
    ) -> UUID:
        """A job of a workflow with these states, the first of which is its start."""
        states = dict(states) | {name: state for name, state in ENDS.items() if _is_named(name, states)}
        document = {"name": "w", "version": next(_versions), "start": next(iter(states)), "states": states} | fields
        machine = compiled(Workflow.model_validate(document), kit.registered())
        await publish(self.store, machine)
        value = {} if value is None else value
        job = await submit(self.store, machine, value, datetime.now(UTC), principal=Actor("local", scopes))
        return job.id

    async def publish(self, name: str, states: Mapping[str, Any], **fields: Any) -> None:
        """A workflow for others to call, in a version of its own."""
        document = {"name": name, "version": next(_versions), "start": next(iter(states)), "states": states} | fields
        await publish(self.store, compiled(Workflow.model_validate(document), kit.registered()))

    async def drive(self, job_id: UUID, answers: Mapping[str, list[Any]] | None = None, **options: Any) -> Job:
        """Runs a job until it ends or waits for a signal."""
        await Driver(self.runner(**options), self.store, self.reads, answers or {}).drive(job_id)
        return await self.job(job_id)

    async def run(self, states: Mapping[str, Any], value: Any = None, **fields: Any) -> Job:
        return await self.drive(await self.submit(states, value, **fields))

    async def job(self, job_id: UUID) -> Job:
        found = await self.reads.overview(job_id)
        assert found is not None
        return found

    async def unsettled(self, job_id: UUID) -> OpenSettlement:
        """The call that a person is to settle."""
        found = await self.reads.unsettled(job_id)
        assert found is not None
        return found

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        return [attempt for turn in await self.reads.turns(job_id) for attempt in turn.attempts]

    async def outcomes(self, job_id: UUID) -> list[tuple[str | None, str | None]]:
        return [(attempt.outcome, attempt.cause) for attempt in await self.attempts(job_id)]

    async def kinds(self, job_id: UUID) -> list[str]:
        return [str(record.kind) for record in await self.reads.events(job_id)]

    async def open_attempt(self, runner: Runner, claim: Claim) -> Transition:
        """As if the worker of ``claim`` got as far as the row of its request, and no further."""
        machine = await runner.machines.get(claim.workflow, claim.version)
        step = advance(machine, claim.job, Claimed(), datetime.now(UTC))
        assert isinstance(step.next, Ask)
        stamp = runner.asking.stamp(machine, step.job, step.next.turn, step.next.attempt)
        assert await self.store.commit(claim, step, stamp)
        return step

    async def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """On a connection of the test's own."""
        connection = await psycopg.AsyncConnection.connect(self.database_url, autocommit=True, row_factory=dict_row)
        async with connection:
            cursor = await connection.execute(statement, parameters)
            return await cursor.fetchall() if cursor.description else []

    async def call(self, job_id: UUID, state: str | None = None) -> dict[str, Any]:
        """The one tool call of a job, or of its state: its columns and its body."""
        query = """
            SELECT * FROM visits WHERE job_id = %s AND kind = 'tool' AND state = COALESCE(%s, state)
        """
        [row] = await self.rows(query, job_id, state)
        return {**row["body"], **row}

    async def expire_lease(self, job_id: UUID) -> None:
        """As if its worker had not been heard of for long."""
        await self.rows("UPDATE jobs SET lease_until = now() - interval '1 s' WHERE id = %s", job_id)

    async def dump(self, job_id: UUID) -> dict[str, list[str]]:
        """Every row that speaks of the job."""
        tables = ("messages", "turns", "attempts", "visits", "signals", "events")
        of_job = {table: f"SELECT * FROM {table} WHERE job_id = %s" for table in tables}  # noqa: S608 -- names of ours
        statements = {"jobs": "SELECT * FROM jobs WHERE id = %s"} | of_job
        return {
            table: sorted(repr(row) for row in await self.rows(statement, job_id))
            for table, statement in statements.items()
        }


def _is_named(name: str, states: Mapping[str, Any]) -> bool:
    named = [target for state in states.values() for target in _targets(state)]
    return name in named and name not in states


def _targets(state: Mapping[str, Any]) -> list[str]:
    onward = state.get("next", {})
    return [onward] if isinstance(onward, str) else [*onward.values(), *state.get("on_failure", {}).values()]


@pytest.fixture(scope="session")
def shared_database_url(postgres_server: Any, migrated_template: str) -> Iterator[str]:
    """One database for all: these tests look at their own jobs alone."""
    name = postgres_server.create("runner", template=migrated_template)
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools and rules are registered by the test that needs them, and gone after it."""
    monkeypatch.setattr(kit, "_tools", {})
    monkeypatch.setattr(kit, "_rules", {})


Open = Callable[..., Awaitable[Works]]


@pytest.fixture
async def works(shared_database_url: str) -> AsyncIterator[Open]:
    """Opens the works with the engine's answers, or with its script by keyword."""
    async with AsyncExitStack() as stack:

        async def open_works(*answers: Line, settings: Settings | None = None, **script: Any) -> Works:
            engine = await stack.enter_async_context(ScriptedEngine(answers, **script))
            database = await stack.enter_async_context(Database(shared_database_url))
            client = await stack.enter_async_context(EngineClient(engine.url, settings=settings))
            identity = await identify(client)
            return Works(shared_database_url, Store(database), Reads(database), engine, client, identity)

        yield open_works
