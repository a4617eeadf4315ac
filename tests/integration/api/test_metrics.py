"""Metrics: the words of the outcomes, numerators with their denominators, and each row counted once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from stepladder.models.database import Database
from stepladder.models.ids import uuid7
from stepladder.models.prices import keep_prices
from stepladder.models.shares import renew_share
from stepladder.queries.counts import Tallies
from stepladder.testing import Answer, Fault, eventually
from stepladder.wiring.prices import parse_prices

if TYPE_CHECKING:
    import pytest

    from stepladder.queries.counts import Tally

    from .conftest import Api

DOCS = Path(__file__).parents[3] / "docs" / "deployment.md"
OBSERVING = """
name: observing
version: 1
start: sum
states:
  sum:
    ask: "Sum up."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules:
      - {id: small, check: "output.total < 10", reason: must be small, severity: observe}
      - {id: even, check: "output.total % 2 == 0", reason: must be even}
    next: done
  done: {end: succeeded}
"""


async def numbers(api: Api) -> dict[str, float]:
    answer = await api.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def drive(api: Api, *answers: Answer | Fault | str, workflow: str = "bill") -> None:
    job = await api.submit(workflow=workflow, input={"team": "search"} if workflow == "bill" else {})
    await api.drive(job["id"], *answers)


async def test_attempts_tokens_jobs_and_requests_are_counted(bill: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepladder.api.metrics.FRESH_S", 0.0)
    _, paused = [await bill.submit() for _ in range(2)]
    await bill.client.post(f"/v1/jobs/{paused['id']}/pause")
    await drive(bill, *(Answer({"total": n}, prompt_tokens=10, completion_tokens=5) for n in (1, 2, 3)))
    first = await numbers(bill)
    failed = 'stepladder_attempts_total{cause="arithmetic",outcome="semantic",workflow="bill"}'
    assert first[failed] == 3
    labels = 'model="scripted",outcome="semantic",workflow="bill"'
    assert first[f'stepladder_tokens_total{{kind="prompt",{labels}}}'] == 30
    assert first[f'stepladder_tokens_total{{kind="completion",{labels}}}'] == 15
    assert first['stepladder_jobs_ended_total{failure="attempts_exhausted",status="failed",workflow="bill"}'] == 1
    by_status = [first[f'stepladder_jobs{{status="{word}"}}'] for word in ("queued", "paused", "failed", "running")]
    assert by_status == [1, 1, 1, 0]
    assert (first["stepladder_queue_jobs"], first["stepladder_jobs_in_hand"]) == (1, 0)
    assert first["stepladder_queue_age_seconds"] > 0
    [taken] = await bill.store.claim_due("worker", 60.0)
    held = await numbers(bill)
    assert held["stepladder_jobs_in_hand"] == 1
    assert held['stepladder_workflow_jobs_in_hand{workflow="bill"}'] == 1
    assert held['stepladder_principal_jobs_in_hand{principal="local"}'] == 1
    await bill.store.release(taken)
    posted = 'stepladder_http_requests_total{method="POST",route="/v1/jobs",status="202"}'
    assert first[posted] == 3
    assert not [name for name in first if name.startswith("stepladder_cost")]  # no price is known


async def test_each_rate_has_its_numerator_and_its_denominator(bill: Api) -> None:
    await drive(bill, Answer({"total": 36}))
    await drive(bill, "no document", Answer({"total": 35}), Answer({"total": 36}))
    found = await numbers(bill)
    counts = [
        found[f'stepladder_{name}_total{{workflow="bill"}}']
        for name in ("first_answers", "first_answers_in_format", "answers_in_format", "answers_semantic_valid")
    ]
    assert counts == [2, 1, 3, 2]
    assert found['stepladder_turns_total{outcome="valid",workflow="bill"}'] == 2


async def test_attempts_per_turn_and_times_are_histograms(bill: Api) -> None:
    await drive(bill, Answer({"total": 36}))
    await drive(bill, Answer({"total": 1}), Answer({"total": 2}), Answer({"total": 3}))
    text = (await bill.client.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {
        name: {(s.name.rpartition("_")[2], s.labels.get("le")): s.value for s in families[name].samples}
        for name in ("stepladder_attempts_per_turn", "stepladder_attempt_seconds", "stepladder_ttft_seconds")
    }
    turns = samples["stepladder_attempts_per_turn"]
    assert families["stepladder_attempts_per_turn"].type == "histogram"
    assert [turns["bucket", le] for le in ("1.0", "2.0", "3.0", "13.0", "+Inf")] == [1, 1, 2, 2, 2]
    assert (turns["count", None], turns["sum", None]) == (2, 4)
    for name in ("stepladder_attempt_seconds", "stepladder_ttft_seconds"):
        took = samples[name]
        assert (took["bucket", "+Inf"], took["count", None]) == (4, 4)
        assert took["sum", None] > 0
        buckets = [value for (kind, _), value in took.items() if kind == "bucket"]
        assert buckets == sorted(buckets)


async def test_rows_that_settle_between_readings_are_counted_once(bill: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepladder.queries.counts.SETTLED_AFTER_S", 1.0)
    tallies = Tallies(bill.store.database)

    def counted(tally: Tally) -> dict[str, float]:
        kinds = {"judged": "attempts", "closed": "turns", "timed": "attempts", "ended": "jobs"}
        sums = {kind: sum(one[name] for one in getattr(tally, kind)) for kind, name in kinds.items()}
        return sums | {"prompt_tokens": sum(one["prompt_tokens"] for one in tally.judged)}

    async def are_settled() -> bool:
        row = await bill.store.database.row("SELECT max(finished_at) < now() - interval '1 s' AS so FROM jobs", {})
        return row is not None and bool(row["so"])

    for jobs in (1, 2):
        await drive(bill, *(Answer({"total": n}, prompt_tokens=10) for n in (1, 2, 3)))
        for settled in (False, True, True):  # before, while and after they settle
            await eventually(are_settled if settled else lambda: True, what="the rows have settled")
            assert counted(await tallies.read()) == {
                "judged": 3 * jobs, "closed": jobs, "timed": 6 * jobs, "ended": jobs, "prompt_tokens": 30 * jobs,
            }  # fmt: skip


async def test_unknown_paths_make_no_new_metrics(api: Api) -> None:
    for n in range(5):
        await api.client.get(f"/nowhere/{n}")
        await api.client.request(f"BREW{n}", "/v1/jobs")
    counted = [name for name in await numbers(api) if name.startswith("stepladder_http_requests_total")]
    assert not [name for name in counted if re.search(r"nowhere|BREW", name)]
    assert len(counted) <= 3


async def test_the_documented_metrics_and_labels_are_exported(bill: Api) -> None:
    async with Database(bill.database_url) as database:
        await keep_prices(database, parse_prices({"*": {"prompt": 1, "completion": 2}}))
    await bill.publish(OBSERVING)
    await drive(bill, Answer({"total": 12}), workflow="observing")
    await bill.submit()
    await bill.store.claim_due("worker", 60.0)
    async with Database(bill.database_url) as database:
        await renew_share(database, "http://gpu/v1", uuid7(), 9, keep=0, in_use=0, wanted=0, lease_s=60.0)
    await bill.client.get("/metrics")
    text = (await bill.client.get("/metrics")).text
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = family.name if family.type == "histogram" else sample.name
            if not name.endswith("_created"):  # the client library's own
                labels[name] = set(sample.labels) - {"le"}
    page = DOCS.read_text()
    rows = re.findall(r"^\| ((?:`stepladder_\w+`(?:, )?)+) \| ([\w, -]*) \|", page, re.MULTILINE)
    listed = {name: set(re.findall(r"\w+", words)) for names, words in rows for name in re.findall(r"\w+", names)}
    assert listed == labels
    [alerts] = re.findall(r"```yml\n(.*?)```", page, re.DOTALL)
    rules = YAML(typ="safe").load(alerts)["groups"][0]["rules"]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    assert len(rules) > len(recorded) >= 5
    for rule in rules:
        for name, chosen in re.findall(r"(stepladder_\w+)(?:{(.*?)})?", rule["expr"]):
            assert set(re.findall(r"(\w+)!?=", chosen)) <= labels[name], rule
        assert set(re.findall(r"workflow:\w+:\w+", rule["expr"])) <= recorded
