"""The one store: what is published, submitted, claimed, committed and signalled. Every method is one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, assert_never

import psycopg

from stepladder.models import fair, hot
from stepladder.models.commands import JobCommands
from stepladder.models.load import encode_raw, job_of, pending_of, settled_of, signal_of
from stepladder.models.records import (
    Claim,
    KeyTaken,
    NewJob,
    Publication,
    Retired,
    Submitted,
    WorkflowRow,
)
from stepladder.models.rows import new_job, step_json
from stepladder.models.submissions import SUBMITTED, write_jobs
from stepladder.models.variants import find_variant, keep_variant
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.event import EventKind
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Connection, Database
    from stepladder.models.records import Stamp, SubmissionKey
    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Attempt
    from stepladder.workflows.transition import Transition


KEYS_KEPT_S = 24 * 3600.0
"""For how long a submission's key is remembered."""


class Store(JobCommands):
    """Writes to an opened ``Database``. Any method raises ``UnreachableError`` when the connection breaks.

    It is then unknown whether the write took place: release the job, and claim it again.
    """

    @property
    def database(self) -> Database:
        return self._database

    # Workflows ------------------------------------------------------------------------------------------------------

    async def publish(self, name: str, version: int, hash: str, document: Json) -> Publication:  # noqa: A002 -- the word
        """Writes a definition under its name and version, once. ``hash`` says which definitions are the same."""
        limits = document.get("limits") if isinstance(document, Mapping) else None
        most = limits.get("max_in_flight") if isinstance(limits, Mapping) else None
        published = {"name": name, "version": version, "hash": hash, "document": json_text(document)}
        published |= {"max_in_flight": most}
        if await self._database.write(_PUBLISH, published):
            return Publication.PUBLISHED
        row = await self._database.row(_WORKFLOW, {"name": name, "version": version})
        same = row is not None and row["hash"] == hash
        return Publication.ALREADY_PUBLISHED if same else Publication.DEFINITION_CHANGED

    async def workflow(self, name: str, version: int | None = None) -> WorkflowRow | None:
        """The definition under that name and version; without a version, the highest that is not retired."""
        row = await self._database.row(_WORKFLOW, {"name": name, "version": version})
        return None if row is None else WorkflowRow(**row)

    async def keep_variant(self, hash: str, base: tuple[str, int], document: Json, changes: JsonObject) -> None:  # noqa: A002 -- the word
        """Keeps a changed document by its hash, once; ``base`` is the version that it was made from."""
        await keep_variant(self._database, hash, base, document, changes)

    async def variant(self, hash: str) -> Json:  # noqa: A002 -- the word
        """A changed document. Raises ``LookupError`` if there is none."""
        return await find_variant(self._database, hash)

    async def keep_schemas(self, schemas: Mapping[str, Json]) -> None:
        """Keeps output schemas by their hash, so that a request can be built again when a tool's schema has changed.

        Call it before the first job of a workflow that uses them; those that are there already are left alone.
        """
        rows = [{"hash": key, "schema": json_text(schema)} for key, schema in schemas.items()]
        await self._database.write(_KEEP_SCHEMAS, {"schemas": json_text(rows)})

    # Jobs -----------------------------------------------------------------------------------------------------------

    async def submit_many(
        self, jobs: Sequence[NewJob], key: SubmissionKey | None = None
    ) -> Submitted | KeyTaken | Retired:
        """Writes new jobs, each with its first event, ``job_created``; all of them or none. They are due at once.

        Under a ``key`` they are written once. The same key and fingerprint again give the jobs of the first time, for
        ``KEYS_KEPT_S``; of several at once, one writes, and the others wait for it. Of a retired version only replays
        are written. Raises ``BadInputError`` for metadata that PostgreSQL cannot hold as ``jsonb`` (NUL in a text).
        """
        try:
            row = await write_jobs(
                self._database,
                jobs,
                {
                    "jobs": json_text([new_job(job) for job in jobs]),
                    "job_ids": [new.job.id for new in jobs],
                    "key_principal": None if key is None else key.principal,
                    "key": None if key is None else key.key,
                    "fingerprint": None if key is None else key.fingerprint,
                    "kept_s": KEYS_KEPT_S,
                    "kind": EventKind.JOB_CREATED,
                },
            )
        except psycopg.errors.UntranslatableCharacter:
            raise BadInputError(
                "The job's metadata hold a character that cannot be stored.", remedy="Take \\u0000 out of them."
            ) from None
        if key is None and row is not None and row["refused"] is not None:
            return Retired(*row["refused"])
        if key is None or row is None or row["written"] or not jobs:
            paused = () if row is None else row["paused"] or ()
            return Submitted(tuple(new.job.id for new in jobs), paused=frozenset(paused))
        known = await self.submitted(key)
        if known is None and row["refused"] is not None:
            return Retired(*row["refused"])
        if known is None:  # the other one's key has just expired
            return await self.submit_many(jobs, key)
        return known

    async def submitted(self, key: SubmissionKey) -> Submitted | KeyTaken | None:
        """What was submitted under the key; None if nothing was, or too long ago."""
        parameters = {"principal": key.principal, "key": key.key, "kept_s": KEYS_KEPT_S}
        row = await self._database.row(SUBMITTED, parameters)
        if row is None:
            return None
        return Submitted(tuple(row["job_ids"]), again=True) if row["fingerprint"] == key.fingerprint else KeyTaken()

    async def claim(
        self, owner: str, lease_s: float, job_id: UUID | None = None, *, held: Collection[UUID] = ()
    ) -> Claim | None:
        """Leases a due, unleased job: the one named, or else the first that ``claim_due`` gives. None if there is none.

        One statement takes the lease and raises the fencing token, so that of two workers one wins. ``owner`` names
        the worker, for people. The jobs that it runs, ``held``, stay with it even if a lease ran out. Bounds on jobs in
        flight do not apply to a job that is named.
        """
        asked_at = asyncio.get_running_loop().time()
        if job_id is None:
            found = await self.claim_due(owner, lease_s, held=held)
            return found[0] if found else None
        if job_id in held:
            return None
        async with self._database.connection() as connection:
            cursor = await connection.execute(hot.CLAIM_ONE, {"owner": owner, "lease_s": lease_s, "job": job_id})
            row = await cursor.fetchone()
            return None if row is None else await _load(connection, row, owner, lease_s, asked_at)

    async def claim_due(self, owner: str, lease_s: float, most: int = 1, *, held: Collection[UUID] = ()) -> list[Claim]:
        """Leases up to ``most`` due, unleased jobs, in the order and within the bounds of ``fair``.

        There may be more to claim unless it returns none.
        """
        asked_at = asyncio.get_running_loop().time()
        parameters = {"owner": owner, "lease_s": lease_s, "most": min(most, fair.MOST), "held": list(held)}
        rows = await self._database.locked(fair.LOCK, fair.TAKE_DUE, parameters)
        claims = await asyncio.gather(*(self._load(row["id"], row["fence"], owner, lease_s, asked_at) for row in rows))
        return [claim for claim in claims if claim is not None]

    async def _load(self, job_id: UUID, fence: int, owner: str, lease_s: float, asked_at: float) -> Claim | None:
        """The claim on a job that was leased a moment ago; None if the lease has ended already."""
        async with self._database.connection() as connection:
            row = await (await connection.execute(fair.LEASED, {"job": job_id, "fence": fence})).fetchone()
            return None if row is None else await _load(connection, row, owner, lease_s, asked_at)

    async def arrived(
        self, claim: Claim, attempt: Attempt, arrival: Arrival, *, ttft_ms: float | None, duration_ms: float
    ) -> bool:
        """Writes what came for an open attempt, before it is judged. Times are in milliseconds.

        False if the worker has the job no longer: another worker has it, and nothing is written; or it is paused, and
        the answer is kept for the worker that claims the job next.
        """
        body, encoding = encode_raw(arrival.body, streamed=arrival.streamed)
        common = {
            "job": claim.job.id,
            "fence": claim.fence,
            "turn": attempt.turn,
            "ordinal": attempt.ordinal,
            "streamed": arrival.streamed,
            "raw": body,
            "raw_encoding": encoding,
            "ttft_ms": ttft_ms,
            "duration_ms": duration_ms,
        }
        came: dict[str, object]
        match arrival:
            case Received():
                came = {
                    "http_status": arrival.status,
                    "retry_after_s": arrival.retry_after_s,
                    "lost_cause": None,
                    "lost_detail": None,
                }
            case Lost():
                came = {
                    "http_status": arrival.status,
                    "retry_after_s": None,
                    "lost_cause": arrival.cause,
                    "lost_detail": json_text(arrival.detail),
                }
            case _:
                assert_never(arrival)
        return await self._database.row(hot.ARRIVED, common | came) is not None

    async def commit(
        self,
        claim: Claim,
        step: Transition,
        stamp: Stamp | None = None,
        *,
        release: bool = True,
        unless_paused: bool = False,
    ) -> bool:
        """Writes a transition, or nothing and returns False if another worker has the job.

        ``stamp`` goes with ``step.opened``. To ask or to run a tool keeps the job and renews the lease; to wait or to
        finish releases it, and so does a rest unless ``release`` is False. A job that was released is due again
        when its time comes, when a signal comes that ``claim`` does not know (not for a rest), or when its
        cancellation is requested. ``unless_paused`` writes nothing, and answers False, where the job or its workflow
        is paused.

        False, too, and the job is released, where another job of its lineage has begun the same irreversible call.
        """
        parameter = step_json(claim, step, stamp, release=release, unless_paused=unless_paused)
        try:
            return await self._database.row(hot.COMMIT, {"step": parameter}) is not None
        except psycopg.errors.UniqueViolation as error:
            if error.diag.constraint_name != hot.ONCE:
                raise
            await self.release(claim)
            return False

    async def holds(self, claim: Claim) -> bool:
        """Whether this worker still holds the job."""
        return await self._database.row(hot.HOLDS, {"job": claim.job.id, "fence": claim.fence}) is not None

    async def release(self, claim: Claim, due_at: datetime | None = None) -> bool:
        """Releases an unfinished job; it is due at ``due_at``, or at once. False if it was not held."""
        held = {
            "job": claim.job.id,
            "fence": claim.fence,
            "known_signals": claim.known_signals,
            "known_cancel": claim.cancel_requested,
            "due_at": due_at,
        }
        return await self._database.row(hot.RELEASE, held) is not None


async def _load(connection: Connection, row: dict[str, Any], owner: str, lease_s: float, asked_at: float) -> Claim:
    """The claimed job. Nothing else may write to it, so it is read in several statements, sent in one batch."""
    read_at = asyncio.get_running_loop().time()
    async with connection.pipeline():
        cursors = [await connection.execute(statement, {"job": row["id"]}) for statement in _READ]
    turns, attempts, visits, messages, signals, spent = [await cursor.fetchall() for cursor in cursors]
    job = job_of(row, turns=turns, attempts=attempts, visits=visits, messages=messages, spent=spent)
    return Claim(
        job=job,
        workflow=row["workflow"],
        version=row["version"],
        owner=owner,
        fence=row["fence"],
        lease_s=lease_s,
        claimed_at=row["claimed_at"],
        known_signals=row["signals_received"],
        signals=tuple(signal_of(signal) for signal in signals),
        cancel_requested=row["cancel_requested"],
        pending=pending_of(job, attempts),
        taken_over=row["taken_over"],
        parent=row["parent"],
        variant=row["variant"],
        asked_at=asked_at,
        read_at=read_at,
        settled=settled_of(visits[-1]) if visits and visits[-1]["closed_at"] is None else None,
    )


_READ = (hot.TURNS, hot.ATTEMPTS, hot.VISITS, hot.MESSAGES, hot.SIGNALS, hot.SPENT)

_PUBLISH = """
WITH others AS (
    SELECT paused_at, paused_by, paused_whole FROM workflows WHERE name = %(name)s FOR SHARE
), whole AS (
    SELECT * FROM others WHERE paused_whole LIMIT 1
)
INSERT INTO workflows (name, version, hash, document, max_in_flight, paused_at, paused_by, paused_whole)
SELECT
    %(name)s, %(version)s, %(hash)s, %(document)s::json,
    %(max_in_flight)s::int, whole.paused_at, whole.paused_by,
    COALESCE(whole.paused_whole, false)
FROM (SELECT) AS one LEFT JOIN whole ON true
ON CONFLICT (name, version) DO NOTHING
"""

_WORKFLOW = """
SELECT name, version, hash, document, created_at, retired, paused_at, paused_by FROM workflows
WHERE name = %(name)s AND (version = %(version)s::int OR %(version)s::int IS NULL AND NOT retired)
ORDER BY version DESC LIMIT 1
"""

_KEEP_SCHEMAS = """
INSERT INTO output_schemas (hash, schema)
SELECT new.hash, new.schema::json FROM json_to_recordset(%(schemas)s::json) AS new(hash text, schema text)
ON CONFLICT (hash) DO NOTHING
"""
