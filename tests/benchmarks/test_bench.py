"""The benchmark still measures what it says. Nothing here looks at a clock."""

from __future__ import annotations

from benchmarks.ladder import RECORDS, bench, beside, differences, invoice, streamed, whole
from benchmarks.timing import Times
from stepladder.schemas.answer import Received
from stepladder.schemas.outcomes import Outcome
from stepladder.validation.ladder import judge


def test_both_ladders_give_the_same_verdicts_on_an_answer_of_700_bytes() -> None:
    case = bench()
    assert differences(case) == []
    assert 650 <= len(case.content) <= 750
    verdicts = [judge(arrival, case.ruled, {}) for arrival in (case.body, case.events)]
    assert [(verdict.outcome, verdict.output) for verdict in verdicts] == [(Outcome.VALID, invoice())] * 2
    assert len(invoice()["lines"]) == RECORDS


def test_the_rule_can_be_broken_whole_and_streamed() -> None:
    case = bench()
    content = case.content.decode().replace('"total":', '"total":1')
    for arrival in (Received(200, whole(content)), Received(200, streamed(content), streamed=True)):
        assert judge(arrival, case.ruled, {}).cause == "total"
        assert judge(arrival, case.plain, {}).ok


def test_every_piece_that_is_measured_runs() -> None:
    for call in {**bench().pieces(), **beside()}.values():
        call()


def test_a_ratio_is_taken_round_by_round() -> None:
    slow, fast = Times((10.0, 300.0, 20.0)), Times((1.0, 30.0, 1.0))
    assert (slow.over(fast), slow.median, fast.over(fast)) == (10.0, 20.0, 1.0)
