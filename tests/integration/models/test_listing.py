"""Jobs found by what became of their attempts, and by texts in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.models.ids import uuid7
from stepladder.models.records import NewJob
from stepladder.queries import search
from stepladder.queries.reads import Reads
from stepladder.queries.where import KNOWN, WhereError, filter_of
from stepladder.schemas.answer import Completion, Lost, Verdict, Violation
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.job_filter import JobFilter
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.workflows.job import Job

from .conftest import NOW

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database

    from .conftest import Bench


def semantic(*rules: str, content: bytes = b"{}") -> Verdict:
    errors = tuple(Violation("/total", f'must be {rule}, 50%_\\ of "it"', rule) for rule in rules)
    return Verdict(Outcome.SEMANTIC, rules[0], Rungs.climbed(3), errors=errors, completion=Completion(content))


def valid(*observed: str, content: bytes = b"{}") -> Verdict:
    seen = tuple(Violation("", "odd", rule) for rule in observed)
    return Verdict(Outcome.VALID, None, Rungs.climbed(4), observed=seen, output={}, completion=Completion(content))


async def judged(bench: Bench, verdict: Verdict, arrival: Any = None, **fields: Any) -> UUID:
    """A job with one attempt of that verdict."""
    job_id = uuid7()
    job = await bench.submit(Job(job_id, job_id, {}, NOW, event_count=1, **fields))
    claim, attempt = await bench.ask(await bench.claim(job))
    assert await bench.answer(claim, attempt, arrival)
    await bench.judge(claim, attempt, verdict)
    return job_id


async def found(database: Database, **where: Any) -> list[UUID]:
    return [job.id for job in (await Reads(database).page(filter_of(where), 100)).jobs]


async def test_a_rule_is_found_wherever_it_was_broken_and_a_cause_with_its_outcome(
    bench: Bench, database: Database
) -> None:
    both = await judged(bench, semantic("sum", "carried"))
    watched = await judged(bench, valid("carried"))
    lost = await judged(bench, Verdict(Outcome.TRANSPORT, "timeout"), Lost(Cause.TIMEOUT, "the \0 wire"))
    assert await found(database, rule="carried") == [watched, both]
    assert await found(database, rule=["sum", "nothing"]) == [both]
    assert await found(database, cause="sum") == [both]  # the first rule alone is the cause
    assert await found(database, cause="carried") == []
    assert await found(database, cause="timeout") == await found(database, outcome="transport") == [lost]
    assert await found(database, cause="timeout", outcome="semantic") == []
    assert await found(database, rule="carried", outcome="valid") == [watched]
    assert await found(database, rule="sum", outcome="valid") == []  # of one and the same attempt


async def test_jobs_are_found_by_state_principal_and_what_they_are_made_from(bench: Bench, database: Database) -> None:
    one = await judged(bench, valid(), principal="ann")
    job_id = uuid7()
    job = Job(job_id, one, {}, NOW, event_count=1, principal="bob")
    await bench.store.submit_many([NewJob(job, "usage-bill", 1, replay_of=one)])
    assert await found(database, state="usage") == await found(database, principal="ann") == [one]
    assert await found(database, principal=["ann", "bob"]) == [job_id, one]
    assert await found(database, replay_of=str(one)) == [job_id]
    assert await found(database, replay_of=str(job_id)) == await found(database, state="elsewhere") == []


@pytest.mark.parametrize(
    ("text", "answer", "hit"),
    [
        ("TOTAL 36", b'{"said": "Total 36"}', True),
        ("100%_\\", b"100%_\\", True),
        ("100%_\\", b"100 x\\", False),
        ("ü😀", "a ü😀 b".encode(), True),
        ("ü", b"\xff\xfe\x00", False),
        ("\\000", b"a\x00b", False),
        ('must be sum, 50%_\\ of "it"', b"{}", True),
        ("MUST BE", b"{}", True),
        ("be.sum", b"{}", False),
        ("reason", b"{}", False),
        ("/total", b"{}", False),
    ],
)
async def test_a_text_is_found_in_answers_and_reasons_to_the_letter(
    bench: Bench, database: Database, text: str, answer: bytes, hit: bool
) -> None:
    job = await judged(bench, semantic("sum", content=answer))
    await judged(bench, valid())
    assert await found(database, search=text) == ([job] if hit else [])
    # Bulk replays take the same words, and their statement is another.
    listed = await Reads(database).jobs(JobFilter(search=text), 10)
    assert [one.id for one in listed] == ([job] if hit else [])


async def test_a_text_is_found_in_the_detail_of_a_failure_and_of_a_lost_answer(
    bench: Bench, database: Database
) -> None:
    lost = await judged(bench, Verdict(Outcome.TRANSPORT, "timeout"), Lost(Cause.TIMEOUT, "Nothing came for 30 s"))
    job, claim = await bench.claimed()
    end = bench.finished(claim)
    failed = replace(end.job, status=JobStatus.FAILED, failure=Failure.LOOP, failure_detail="came round 3 times")
    assert await bench.commit(claim, replace(end, job=failed))
    assert await found(database, search="came FOR 30") == [lost]
    assert await found(database, search="round 3") == [job.id]
    assert await found(database, search="round 3", outcome="transport") == []


async def test_a_page_of_a_search_is_bounded_and_its_cursor_goes_on_to_the_end(
    bench: Bench, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepladder.queries.reads.LOOKED_AT", 6)
    monkeypatch.setattr("stepladder.queries.reads.CHUNK", 3)
    oldest = await judged(bench, valid(content=b"needle"))
    for _ in range(13):
        await bench.submit()
    newest = await judged(bench, valid(content=b"needle"))
    reads, wanted = Reads(database), JobFilter(search="needle")
    pages = [await reads.page(wanted, 10)]
    while (place := pages[-1].following) is not None:
        await judged(bench, valid(content=b"needle"))  # what arrives meanwhile stands before the first page
        pages.append(await reads.page(wanted, 10, place))
    assert [[job.id for job in page.jobs] for page in pages] == [[newest], [], [oldest]]
    assert all(page.looked_back_to == NOW for page in pages)
    one = await reads.page(wanted, 1)
    assert len(one.jobs) == 1
    assert one.following is not None


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"status": "weird"}, "one of queued"),
        ({"replay_of": "x"}, "a job id such as"),
        ({"parent": ["0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"] * 2}, "one value"),
        ({"search": ""}, "1 to 200"),
        ({"search": "x" * (search.LONGEST + 1)}, "1 to 200"),
        ({"colour": "red"}, "replay_of"),
    ],
)
def test_a_word_that_no_filter_has_is_told_with_those_that_there_are(where: dict[str, Any], said: str) -> None:
    with pytest.raises(WhereError, match=said):
        filter_of(where)
    assert "search" in KNOWN


async def test_a_rule_is_found_the_same_whether_few_answers_broke_it_or_many(
    bench: Bench, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [await judged(bench, semantic("sum", "carried")) for _ in range(4)]
    for few in (0, 3, 4):
        monkeypatch.setattr("stepladder.queries.rare.FEW", few)
        assert await found(database, rule="sum") == jobs[::-1]
        assert await found(database, rule="sum", search="be CARRIED") == jobs[::-1]
        assert await found(database, rule="never") == []
        assert await found(database, rule=["never", "carried"], state="elsewhere") == []


async def test_statistics_are_of_the_jobs_that_pass_the_filter(bench: Bench, database: Database) -> None:
    await judged(bench, valid(), principal="ann")
    await judged(bench, semantic("sum"), principal="bob")
    reads, since = Reads(database), NOW - timedelta(days=1)
    for where, attempts, usable in (({}, 2, 1), ({"principal": "ann"}, 1, 1), ({"rule": "sum"}, 1, 0)):
        [stats] = await reads.stats(since, wanted=filter_of(where))
        assert (stats.attempts, stats.usable, stats.jobs.live) == (attempts, usable, attempts)
    assert await reads.stats(since, wanted=filter_of({"workflow": "another"})) == ()
    assert await reads.stats(since, "another", filter_of({"principal": "ann"})) == ()
    assert [one.attempts for one in await reads.stats(since, "usage-bill", filter_of({"status": "running"}))] == [2]
