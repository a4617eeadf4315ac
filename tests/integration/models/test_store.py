from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from stepladder.models.database import Database
from stepladder.models.ids import uuid7
from stepladder.models.records import NewJob, Publication
from stepladder.schemas.answer import Verdict
from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.workflows.job import Job, Message
from stepladder.workflows.transition import Finished, Rest, Transition

from .conftest import NOW

if TYPE_CHECKING:
    from stepladder.models.store import Store
    from stepladder.schemas.jsontypes import Json

    from .conftest import Bench

DOCUMENT: dict[str, Json] = {
    "name": "w",
    "states": {"z": {"end": "succeeded"}, "a": {"end": "failed"}},
    "note": "\0 1.0",
    "n": 1.0,
}


async def test_a_definition_is_published_once_and_never_changed(store: Store) -> None:
    assert await store.publish("w", 1, "hash", DOCUMENT) is Publication.PUBLISHED
    assert await store.publish("w", 1, "hash", DOCUMENT) is Publication.ALREADY_PUBLISHED
    assert await store.publish("w", 1, "another", {}) is Publication.DEFINITION_CHANGED
    row = await store.workflow("w", 1)
    assert row is not None
    assert (row.name, row.version, row.hash) == ("w", 1, "hash")
    assert repr(row.document) == repr(DOCUMENT)


async def test_without_a_version_the_highest_is_meant(store: Store) -> None:
    for version in (2, 10, 9):
        await store.publish("w", version, f"hash {version}", {})
    highest, second = await store.workflow("w"), await store.workflow("w", 2)
    assert (highest and highest.version, second and second.hash) == (10, "hash 2")
    assert await store.workflow("w", 3) is None
    assert await store.workflow("unknown") is None


async def test_output_schemas_are_kept_once_by_their_hash(bench: Bench) -> None:
    await bench.store.keep_schemas({"h1": {"type": "object", "title": "\0"}, "h2": {}})
    await bench.store.keep_schemas({"h1": {"type": "array"}, "h3": True})
    await bench.store.keep_schemas({})
    rows = await bench.rows("SELECT hash, schema FROM output_schemas ORDER BY hash")
    assert [(row["hash"], row["schema"]) for row in rows] == [
        ("h1", {"type": "object", "title": "\0"}),
        ("h2", {}),
        ("h3", True),
    ]


async def test_a_submitted_job_has_its_first_event_and_all_that_it_came_with(bench: Bench) -> None:
    first = await bench.submit()
    job_id = uuid7()
    job = Job(job_id, first.lineage, None, NOW, token_budget=0, deadline_at=NOW, event_count=1)
    job = replace(job, principal="somebody", scopes=frozenset())
    new = NewJob(job, "usage-bill", 1, priority=-3, metadata={"team": "search"}, replay_of=first.id)
    await bench.store.submit_many([new])
    assert (await bench.claim(job)).job == job
    row = await bench.row(job)
    assert (row["principal"], row["priority"], row["metadata"]) == ("somebody", -3, {"team": "search"})
    assert row["replay_of"] == first.id
    dump = await bench.dump()
    assert len([line for line in dump["events"] if EventKind.JOB_CREATED in line]) == 2


async def test_a_job_of_an_unpublished_workflow_leaves_nothing_behind(bench: Bench) -> None:
    before = await bench.dump()
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await bench.store.submit_many([NewJob(Job(uuid7(), uuid7(), {}, NOW), "usage-bill", 2)])
    assert await bench.dump() == before


async def test_metadata_that_cannot_be_stored_are_bad_input(bench: Bench) -> None:
    before = await bench.dump()
    with pytest.raises(BadInputError, match="metadata"):
        await bench.store.submit_many([NewJob(Job(uuid7(), uuid7(), {}, NOW), "usage-bill", 1, metadata={"k": "\0"})])
    assert await bench.dump() == before


async def test_a_step_that_breaks_a_rule_of_the_tables_writes_nothing(bench: Bench) -> None:
    job, claim = await bench.claimed()
    before = await bench.dump()
    twice = (Message(1, 0, "system", "hi"), Message(1, 0, "system", "hi"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        await bench.commit(claim, Transition(job, Rest(NOW), messages=twice))
    with pytest.raises(psycopg.errors.CheckViolation):  # ended, and not yet over
        await bench.commit(claim, Transition(replace(job, status=JobStatus.FAILED), Rest(NOW)))
    with pytest.raises(psycopg.errors.CheckViolation):  # over, and not yet ended
        await bench.commit(claim, Transition(replace(job, status=JobStatus.RUNNING), Finished()))
    assert await bench.dump() == before


async def test_events_are_only_ever_appended(bench: Bench) -> None:
    await bench.submit()
    async with await bench.connect() as connection:
        with pytest.raises(psycopg.errors.RestrictViolation, match="events stays as it was written"):
            await connection.execute("UPDATE events SET kind = 'job_failed'")


async def test_a_verdict_stands(bench: Bench) -> None:
    _, claim, attempt = await bench.asked()
    await bench.answer(claim, attempt)
    claim = await bench.judge(claim, attempt, Verdict(Outcome.EMPTY, "no_content"))
    with pytest.raises(psycopg.errors.RestrictViolation, match="attempts stays as it was written"):
        await bench.judge(claim, attempt, Verdict(Outcome.VALID))
    async with await bench.connect() as connection:
        with pytest.raises(psycopg.errors.RestrictViolation):
            await connection.execute("UPDATE attempts SET raw = 'forged'")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://user:secret-word@127.0.0.1:1/x", "PostgreSQL at 127.0.0.1:1, database x as user"),
        ("postgresql://user:secret-word@/x?host=/nowhere", "PostgreSQL at /nowhere, database x as user"),
    ],
)
async def test_a_server_that_is_not_there_is_named_without_the_password(url: str, said: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        await Database(url).open()
    assert said in str(caught.value)
    assert "STEPLADDER_DATABASE_URL" in caught.value.remedy
    assert "secret-word" not in f"{caught.value} {caught.value.remedy} {caught.value!r} {Database(url)!r}"
    assert caught.value.__suppress_context__


async def test_a_database_that_does_not_exist_is_unreachable(database_url: str) -> None:
    with pytest.raises(UnreachableError, match="does not exist"):
        await Database(f"{database_url} dbname=nowhere").open()


async def test_a_database_without_tables_says_how_to_make_them(bare_database_url: str) -> None:
    with pytest.raises(UnreachableError, match="has no tables yet") as caught:
        await Database(bare_database_url).open()
    assert "stepladder migrate" in caught.value.remedy


async def test_tables_of_another_revision_are_not_used(own_database_url: str) -> None:
    with psycopg.connect(own_database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UnreachableError, match="revision 9999"):
        await Database(own_database_url).open()


@pytest.mark.parametrize(
    "url", ["postgresql://user:secret-word@[half/x", "user:secret-word@host", "mysql://a:secret-word@b"]
)
def test_a_url_that_cannot_be_read_is_bad_input_and_is_not_repeated(url: str) -> None:
    with pytest.raises(BadInputError) as caught:
        Database(url)
    assert "secret-word" not in f"{caught.value} {caught.value.remedy}"
    assert caught.value.__suppress_context__


async def test_a_connection_that_breaks_is_unreachable_and_the_next_one_works(bench: Bench) -> None:
    job = await bench.submit()
    async with await bench.connect() as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'stepladder' AND datname = current_database()"
        )
    with pytest.raises(UnreachableError):
        await bench.claim(job)
    assert (await bench.claim(job)).job.id == job.id
