from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.answer import Verdict, Violation
from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import CAUSES, Cause, Outcome
from stepladder.workflows.job import Attempt, JobFailure
from stepladder.workflows.retry import (
    FIRST_BACKOFF_S,
    LONGEST_BACKOFF_S,
    Again,
    RetryLimits,
    decide,
    first,
    wants_fresh_connection,
)
from support.machines import NOW, accepted, rejected

ANSWERED = [Outcome.EMPTY, Outcome.PARSE_FAILURE, Outcome.SCHEMA_VIOLATION, Outcome.SEMANTIC]
FINAL = {
    Outcome.SCHEMA_REJECTED: Failure.SCHEMA_REJECTED,
    Outcome.REQUEST_REJECTED: Failure.REQUEST_REJECTED,
    Outcome.REFUSED: Failure.REFUSED,
}
LOST = [cause for cause in CAUSES[Outcome.TRANSPORT] if cause is not Cause.ABANDONED]
WRONG = (Violation("/total", "must be hours times 3", "arithmetic"),)


def attempts(*verdicts: Verdict, budget: int = 100, note: str = "") -> list[Attempt]:
    """One attempt for each verdict; every answer is another one unless its content says otherwise."""
    return [
        Attempt(1, ordinal, budget, note=note, verdict=verdict, content_hash=_hash(verdict, ordinal))
        for ordinal, verdict in enumerate(verdicts, 1)
    ]


def _hash(verdict: Verdict, ordinal: int) -> str | None:
    if verdict.outcome is Outcome.TRANSPORT:
        return None
    return f"answer {ordinal}" if verdict.completion.content is None else verdict.completion.content.decode()


def decided(tries: list[Attempt], limits: RetryLimits, spent: int = 0, **more: Any) -> Again | JobFailure:
    return decide(tries, limits, spent, NOW, "key", **more)


def again(tries: list[Attempt], limits: RetryLimits, spent: int = 0, **more: Any) -> Again:
    found = decided(tries, limits, spent, **more)
    assert isinstance(found, Again), found
    return found


def give_up(tries: list[Attempt], limits: RetryLimits, spent: int = 0, **more: Any) -> JobFailure:
    found = decided(tries, limits, spent, **more)
    assert isinstance(found, JobFailure), found
    return found


# One table: what became of the attempt, what binds it, what follows --------------------------------------------------

SEMANTIC = rejected(Outcome.SEMANTIC, "arithmetic", errors=WRONG)
EMPTY = rejected(Outcome.EMPTY, Cause.NO_CONTENT)
CUT = rejected(Outcome.TRUNCATION, Cause.BUDGET, tokens=150, prompt=50)
REASONED = rejected(Outcome.TRUNCATION, Cause.REASONING)
RUNAWAY = rejected(Outcome.TRUNCATION, Cause.RUNAWAY, content=b"so it goes, " * 9)
DOWN = rejected(Outcome.TRANSPORT, Cause.CONNECT, tokens=0)
ABANDONED = rejected(Outcome.TRANSPORT, Cause.ABANDONED, tokens=0)
FREE = RetryLimits(3)
LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("verdicts", "limits", "follows"),
    [
        # answers that arrived and were wrong
        ([SEMANTIC], FREE, Again),
        ([SEMANTIC, SEMANTIC], FREE, Again),
        ([SEMANTIC, SEMANTIC, SEMANTIC], FREE, Failure.ATTEMPTS_EXHAUSTED),
        ([SEMANTIC], RetryLimits(1), Failure.ATTEMPTS_EXHAUSTED),
        ([SEMANTIC], RetryLimits(0), Failure.ATTEMPTS_EXHAUSTED),
        ([EMPTY], FREE, Again),
        ([CUT], FREE, Again),
        ([CUT, CUT, CUT], FREE, Failure.ATTEMPTS_EXHAUSTED),
        ([RUNAWAY], RetryLimits(1), Failure.ATTEMPTS_EXHAUSTED),
        ([CUT, CUT], RetryLimits(2), Failure.ATTEMPTS_EXHAUSTED),
        ([RUNAWAY, SEMANTIC, CUT], FREE, Failure.ATTEMPTS_EXHAUSTED),
        # answers that never arrived count on their own
        ([DOWN], FREE, Again),
        ([DOWN] * 50, FREE, Again),
        ([SEMANTIC, DOWN, DOWN, DOWN, SEMANTIC], FREE, Again),
        ([SEMANTIC, SEMANTIC, DOWN], FREE, Again),
        ([DOWN], RetryLimits(3, transport=0), Failure.ATTEMPTS_EXHAUSTED),
        ([DOWN], RetryLimits(3, transport=1), Again),
        ([DOWN, DOWN], RetryLimits(3, transport=1), Failure.ATTEMPTS_EXHAUSTED),
        ([DOWN, SEMANTIC], RetryLimits(3, transport=0), Again),
        # a worker that died counts for nothing
        ([ABANDONED], RetryLimits(1, transport=0), Again),
        ([ABANDONED] * 9, RetryLimits(1, transport=0), Again),
        ([ABANDONED, ABANDONED, DOWN], RetryLimits(1, transport=1), Again),
        ([DOWN, ABANDONED, DOWN], RetryLimits(1, transport=1), Failure.ATTEMPTS_EXHAUSTED),
        ([DOWN, SEMANTIC, DOWN], RetryLimits(3, transport=1), Failure.ATTEMPTS_EXHAUSTED),
        ([SEMANTIC, SEMANTIC, DOWN], RetryLimits(3, transport=1), Again),
        # the job's own bounds
        ([SEMANTIC], RetryLimits(3, token_budget=0), Failure.TOKEN_BUDGET),
        ([SEMANTIC], RetryLimits(3, token_budget=10), Failure.TOKEN_BUDGET),
        ([SEMANTIC], RetryLimits(3, token_budget=11), Again),
        ([CUT], RetryLimits(3, token_budget=60), Failure.TOKEN_BUDGET),
        ([CUT], RetryLimits(3, token_budget=161), Again),
        ([DOWN], RetryLimits(3, token_budget=10), Failure.TOKEN_BUDGET),
        ([DOWN], RetryLimits(3, token_budget=11), Again),
        ([SEMANTIC, CUT], RetryLimits(3, token_budget=60), Failure.TOKEN_BUDGET),
        ([CUT, SEMANTIC], RetryLimits(3, token_budget=60), Again),
        ([ABANDONED], RetryLimits(3, token_budget=10), Failure.TOKEN_BUDGET),
        ([SEMANTIC], RetryLimits(3, deadline_at=NOW), Failure.DEADLINE),
        ([SEMANTIC], RetryLimits(3, deadline_at=LATER), Again),
        ([ABANDONED], RetryLimits(3, deadline_at=NOW), Failure.DEADLINE),
        ([DOWN], RetryLimits(3, deadline_at=NOW + timedelta(seconds=0.2)), Failure.DEADLINE),
        ([DOWN], RetryLimits(3, deadline_at=NOW + timedelta(seconds=0.5)), Again),
        # more than one bound at once: the turn's own comes first
        ([SEMANTIC], RetryLimits(1, token_budget=0, deadline_at=NOW), Failure.ATTEMPTS_EXHAUSTED),
        ([SEMANTIC], RetryLimits(3, token_budget=0, deadline_at=NOW), Failure.TOKEN_BUDGET),
    ],
)
def test_what_follows_an_attempt(verdicts: list[Verdict], limits: RetryLimits, follows: Any) -> None:
    found = decided(attempts(*verdicts), limits, spent=10)
    assert found.kind is follows if isinstance(found, JobFailure) else follows is Again


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.SCHEMA_REJECTED, None),
        *((outcome, cause) for outcome in (Outcome.REQUEST_REJECTED, Outcome.REFUSED) for cause in CAUSES[outcome]),
    ],
)
@pytest.mark.parametrize("before", [[], [SEMANTIC], [DOWN]])
def test_what_the_engine_or_the_model_declines_is_not_asked_again(
    outcome: Outcome, cause: Cause | None, before: list[Verdict]
) -> None:
    declined = rejected(outcome, cause, errors=(Violation("", "for this reason"),))
    found = give_up(attempts(*before, declined), RetryLimits(100))
    assert found.kind is FINAL[outcome]
    assert found.detail == outcome.value + (f" ({cause.value})" if cause else "") + ": for this reason"


@pytest.mark.parametrize("verdict", [None, accepted({})])
def test_only_an_attempt_that_failed_is_retried(verdict: Verdict | None) -> None:
    with pytest.raises(ValueError, match="only an attempt that failed"):
        decided([Attempt(1, 1, 100, verdict=verdict)], FREE)


@pytest.mark.parametrize("outcome", ANSWERED)
def test_a_wrong_answer_is_told_where_and_why_at_the_same_budget(outcome: Outcome) -> None:
    found = again(attempts(rejected(outcome, "x", errors=WRONG), note="older"), FREE)
    assert found.max_completion_tokens == 100
    assert "/total: must be hours times 3" in found.note
    assert "older" not in found.note
    assert found.after_s == 0


def test_a_lost_or_cut_answer_is_asked_again_with_the_same_note() -> None:
    assert again(attempts(DOWN, note="as before"), FREE).note == "as before"
    assert again(attempts(ABANDONED, note="as before"), FREE) == Again(100, "as before")
    assert again(attempts(CUT, note="as before"), FREE) == Again(200, "as before")


# Truncation -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", [Cause.BUDGET, Cause.REASONING])
def test_the_budget_is_raised_to_the_models_limit_and_then_the_turn_fails(cause: Cause) -> None:
    cut = rejected(Outcome.TRUNCATION, cause, tokens=150, prompt=50)
    assert again(attempts(cut), RetryLimits(3, max_model_len=1000)).max_completion_tokens == 200
    assert again(attempts(cut), RetryLimits(3, max_model_len=200)).max_completion_tokens == 150
    assert again(attempts(cut), RetryLimits(3, max_model_len=151)).max_completion_tokens == 101
    uncounted = rejected(Outcome.TRUNCATION, cause, tokens=0)
    assert again(attempts(uncounted), RetryLimits(3, max_model_len=150)).max_completion_tokens == 150
    assert isinstance(decided(attempts(uncounted, budget=150), RetryLimits(3, max_model_len=150)), JobFailure)
    ended = give_up(attempts(cut), RetryLimits(3, max_model_len=150))
    assert ended.kind is Failure.ATTEMPTS_EXHAUSTED
    assert ended.detail == (
        "the model's limit of 150 tokens, 50 of them for the prompt, leaves no more than the 100 that were too few:"
        f" truncation ({cause.value})"
    )


@pytest.mark.parametrize("word", ["model_length", "Model_Context_Window_Exceeded"])
def test_an_engine_that_says_the_model_is_full_is_not_asked_for_more(word: str) -> None:
    full = rejected(Outcome.TRUNCATION, Cause.BUDGET, finish_reason=word)
    ended = give_up(attempts(full), FREE)
    assert (ended.kind, word in ended.detail) == (Failure.ATTEMPTS_EXHAUSTED, True)
    assert isinstance(
        decided(attempts(rejected(Outcome.TRUNCATION, Cause.BUDGET, finish_reason="length")), FREE), Again
    )


def test_a_runaway_is_told_to_end_and_not_given_more() -> None:
    found = again(attempts(RUNAWAY, note="older"), RetryLimits(3, max_model_len=150))
    assert found.max_completion_tokens == 100
    assert "keep it short" in found.note
    assert "older" not in found.note


@pytest.mark.parametrize(
    "content", [None, b'{"n": 3141592653589793238462643383279502884197169399375105820974944', b"{}"]
)
def test_a_runaway_that_does_not_repeat_gets_a_larger_budget(content: bytes | None) -> None:
    found = again(attempts(rejected(Outcome.TRUNCATION, Cause.RUNAWAY, content=content)), FREE)
    assert found.max_completion_tokens > 100
    assert "keep it short" in found.note


def test_a_cut_answer_is_not_asked_again_with_no_more_than_was_too_little() -> None:
    limits = RetryLimits(3, token_budget=250)  # of which the prompt takes 50
    for spent in (150, 100):
        ended = give_up(attempts(CUT), limits, spent=spent)
        assert ended.kind is Failure.TOKEN_BUDGET
        assert ended.detail == f"{spent} of 250 tokens are spent; the rest is too few for an answer cut at 100"
    assert again(attempts(CUT), limits, spent=99).max_completion_tokens == 101


# Repeats --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.TRUNCATION, Cause.BUDGET),
        (Outcome.TRUNCATION, Cause.RUNAWAY),
        (Outcome.PARSE_FAILURE, "x"),
        (Outcome.SCHEMA_VIOLATION, "x"),
        (Outcome.SEMANTIC, "x"),
    ],
)
def test_the_same_failed_answer_twice_ends_the_turn(outcome: Outcome, cause: str) -> None:
    same = rejected(outcome, cause, content=b"same", errors=WRONG)
    other = rejected(outcome, cause, content=b"other", errors=WRONG)
    for tries in ([same, same], [same, DOWN, same], [same, other, same], [same, ABANDONED, same]):
        ended = give_up(attempts(*tries), RetryLimits(100))
        assert ended.kind is Failure.ATTEMPTS_EXHAUSTED
        assert (
            ended.detail == f"repeated: the same answer came twice, {outcome} ({cause}): /total must be hours times 3"
        )
    for tries in ([same, other], [same, DOWN, other], [same]):
        assert isinstance(decided(attempts(*tries), RetryLimits(100)), Again)


@pytest.mark.parametrize("first_one", [None, b"", b" \n"])
@pytest.mark.parametrize("second", [None, b"", b"\t"])
def test_nothing_twice_is_the_same_answer(first_one: bytes | None, second: bytes | None) -> None:
    """A stream begins with an empty text, and a whole answer has null: what follows must not hang on that."""
    nothing = [rejected(Outcome.EMPTY, Cause.NO_CONTENT, content=content) for content in (first_one, second)]
    assert "repeated" in give_up(attempts(*nothing), FREE).detail


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.TRUNCATION, Cause.REASONING),
        (Outcome.EMPTY, Cause.CONTENT_IN_REASONING),
        (Outcome.EMPTY, Cause.UNEXPECTED_TOOL_CALLS),
    ],
)
def test_answers_with_text_outside_the_content_are_no_repeats(outcome: Outcome, cause: Cause) -> None:
    empty = rejected(outcome, cause, content=b"")
    next_one = again(attempts(empty, empty), FREE)
    assert next_one.max_completion_tokens == (200 if outcome is Outcome.TRUNCATION else 100)
    assert isinstance(decided(attempts(EMPTY, empty), FREE), Again)
    assert give_up(attempts(empty, empty, empty), FREE).detail.startswith("3 of 3 attempts")


@pytest.mark.parametrize("rule", ["reasoning", "content_in_reasoning", "runaway", "no_content"])
def test_a_rule_may_be_called_like_a_cause(rule: str) -> None:
    same = rejected(Outcome.SEMANTIC, rule, content=b"same", errors=WRONG)
    assert "repeated" in give_up(attempts(same, same), FREE).detail
    assert "must be hours times 3" in again(attempts(same), FREE).note


def test_a_cut_text_that_then_comes_whole_is_told_what_is_wrong() -> None:
    cut = rejected(Outcome.TRUNCATION, Cause.BUDGET, content=b'{"total": 6}')
    whole = rejected(Outcome.SEMANTIC, "arithmetic", content=b'{"total": 6}', errors=WRONG)
    assert "must be hours times 3" in again(attempts(cut, whole), FREE).note
    assert "repeated" in give_up(attempts(cut, whole, whole), RetryLimits(9)).detail
    assert "repeated" in give_up(attempts(cut, whole, cut), RetryLimits(9)).detail


# What the failure says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "limits", "detail"),
    [
        ([SEMANTIC] * 3, FREE, "3 of 3 attempts, semantic (arithmetic): /total must be hours times 3"),
        ([SEMANTIC], RetryLimits(0), "1 of 0 attempts, semantic (arithmetic): /total must be hours times 3"),
        ([EMPTY], RetryLimits(1), "1 of 1 attempts, empty (no_content)"),
        ([DOWN] * 3, RetryLimits(3, transport=2), "2 of 2 transport retries, transport (connect)"),
        ([DOWN], RetryLimits(3, transport=0), "0 of 0 transport retries, transport (connect)"),
        ([SEMANTIC], RetryLimits(3, token_budget=7), "10 of 7 tokens are spent"),
        ([CUT], RetryLimits(3, token_budget=60), "10 of 60 tokens are spent, and the prompt takes 50"),
        ([CUT], RetryLimits(3, token_budget=10), "10 of 10 tokens are spent"),
        (
            [SEMANTIC],
            RetryLimits(3, deadline_at=NOW - timedelta(milliseconds=1)),
            "the deadline, 2026-01-01T11:59:59+00:00, has passed",
        ),
        (
            [rejected(Outcome.TRANSPORT, Cause.HTTP_429, tokens=0, retry_after_s=0.6)],
            RetryLimits(3, deadline_at=NOW),
            "the deadline, 2026-01-01T12:00:00+00:00, comes before the end of a backoff of 0.6 s",
        ),
        (
            [rejected(Outcome.SEMANTIC, "a", errors=(Violation("/a", "must be 1"), Violation("/b", "must be 2")))],
            RetryLimits(1),
            "1 of 1 attempts, semantic (a): /a must be 1",
        ),
        ([SEMANTIC], RetryLimits(3, deadline_at=NOW), "the deadline, 2026-01-01T12:00:00+00:00, has passed"),
        (
            [rejected(Outcome.TRANSPORT, Cause.HTTP_503, tokens=0, retry_after_s=60)],
            RetryLimits(3, deadline_at=NOW + timedelta(seconds=60)),
            "the deadline, 2026-01-01T12:01:00+00:00, comes before the end of a backoff of 60.0 s",
        ),
    ],
)
def test_the_detail_says_which_bound_it_was_with_its_figures(
    verdicts: list[Verdict], limits: RetryLimits, detail: str
) -> None:
    assert give_up(attempts(*verdicts), limits, spent=10).detail == detail


def test_a_detail_is_cut_where_an_engine_talks_without_end() -> None:
    declined = rejected(Outcome.REQUEST_REJECTED, Cause.BAD_REQUEST, errors=(Violation("", "x" * 9999),))
    assert len(give_up(attempts(declined), FREE).detail) == 500


# Backoff --------------------------------------------------------------------------------------------------------------


@given(st.sampled_from(LOST), st.integers(1, 40), st.text())
def test_backoff_doubles_between_its_half_and_its_cap(cause: Cause, count: int, key: str) -> None:
    lost = rejected(Outcome.TRANSPORT, cause, tokens=0)
    found = decide(attempts(*[lost] * count), FREE, 0, NOW, key)
    assert isinstance(found, Again)
    full = min(FIRST_BACKOFF_S * 2 ** (count - 1), LONGEST_BACKOFF_S)
    assert full / 2 <= found.after_s <= full
    assert decide(attempts(*[lost] * count), FREE, 0, NOW, key) == found
    assert (FIRST_BACKOFF_S, LONGEST_BACKOFF_S) == (0.5, 30)


def test_an_attempt_that_has_no_verdict_yet_is_neither_lost_nor_a_repeat() -> None:
    unjudged = Attempt(1, 1, 100)
    assert isinstance(decided([unjudged, *attempts(SEMANTIC)], FREE), Again)
    assert isinstance(decided([unjudged, *attempts(DOWN)], RetryLimits(3, transport=1)), Again)


def test_backoff_begins_anew_once_an_answer_came() -> None:
    assert again(attempts(*[DOWN] * 9), FREE).after_s >= LONGEST_BACKOFF_S / 2
    assert again(attempts(*[DOWN] * 9, SEMANTIC, DOWN), FREE).after_s <= FIRST_BACKOFF_S
    assert again(attempts(DOWN, ABANDONED, DOWN), FREE).after_s > FIRST_BACKOFF_S / 2


def test_a_lost_exchange_is_followed_on_a_fresh_connection() -> None:
    assert not wants_fresh_connection(attempts(DOWN))
    assert not wants_fresh_connection(attempts(SEMANTIC, SEMANTIC))
    assert not wants_fresh_connection(attempts(DOWN, SEMANTIC, SEMANTIC))
    assert wants_fresh_connection(attempts(DOWN, SEMANTIC))
    assert wants_fresh_connection([*attempts(SEMANTIC, DOWN), Attempt(1, 3, 100)])


def test_backoff_sets_turns_apart() -> None:
    waits = {decide(attempts(DOWN), FREE, 0, NOW, f"job/{n}") for n in range(100)}
    assert len(waits) > 90
    seconds = [wait.after_s for wait in waits if isinstance(wait, Again)]
    assert min(seconds) < 0.28
    assert max(seconds) > 0.47


@given(st.floats(0, 300))
def test_retry_after_is_honoured(seconds: float) -> None:
    found = again(attempts(rejected(Outcome.TRANSPORT, Cause.HTTP_429, tokens=0, retry_after_s=seconds)), FREE)
    assert found.after_s >= seconds
    assert found.after_s <= max(seconds, FIRST_BACKOFF_S)


def test_a_backoff_that_has_passed_is_not_asked_for_again() -> None:
    assert again(attempts(DOWN, note="kept"), FREE, rested=True) == Again(100, "kept")
    limits = RetryLimits(3, deadline_at=NOW)
    assert give_up(attempts(DOWN), limits, rested=True).kind is Failure.DEADLINE


# The first attempt ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "spent", "follows"),
    [
        (FREE, 10**9, Again(100)),
        (RetryLimits(0), 0, Failure.ATTEMPTS_EXHAUSTED),
        (RetryLimits(1), 0, Again(100)),
        (RetryLimits(3, token_budget=0), 0, Failure.TOKEN_BUDGET),
        (RetryLimits(3, token_budget=50), 0, Again(50)),
        (RetryLimits(3, token_budget=50), 20, Again(30)),
        (RetryLimits(3, token_budget=50), 50, Failure.TOKEN_BUDGET),
        (RetryLimits(3, token_budget=50), 99, Failure.TOKEN_BUDGET),
        (RetryLimits(3, token_budget=500), 20, Again(100)),
        (RetryLimits(3, deadline_at=NOW), 0, Failure.DEADLINE),
        (RetryLimits(3, deadline_at=NOW - timedelta(days=1)), 0, Failure.DEADLINE),
        (RetryLimits(3, deadline_at=LATER), 0, Again(100)),
        (RetryLimits(3, transport=0), 0, Again(100)),
        (RetryLimits(3, max_model_len=100), 0, Again(100)),
        (RetryLimits(3, max_model_len=99), 0, Again(99)),
        (RetryLimits(3, max_model_len=60, token_budget=50), 0, Again(50)),
    ],
)
def test_whether_a_turn_may_be_asked_at_all(limits: RetryLimits, spent: int, follows: Any) -> None:
    found = first(100, limits, spent, NOW)
    assert (found.kind if isinstance(found, JobFailure) else found) == follows
    if limits.attempts == 0:
        assert found == JobFailure(Failure.ATTEMPTS_EXHAUSTED, "retry.attempts is 0, so that the turn may not be asked")


# Every sequence -------------------------------------------------------------------------------------------------------

CAUSES_OF = {**CAUSES, Outcome.SCHEMA_REJECTED: (), Outcome.SCHEMA_VIOLATION: ("type",), Outcome.SEMANTIC: ("rule",)}
VERDICTS = st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.VALID]).flatmap(
    lambda outcome: st.builds(
        rejected,
        st.just(outcome),
        st.sampled_from(CAUSES_OF[outcome] or (None,)),
        content=st.none() | st.binary(max_size=1).map(bytes.hex).map(str.encode),
        tokens=st.integers(0, 100),
        retry_after_s=st.none() | st.floats(0, 300),
    )
)
BOUNDS = st.builds(
    RetryLimits,
    attempts=st.integers(0, 5),
    transport=st.none() | st.integers(0, 3),
    token_budget=st.none() | st.integers(0, 500),
    deadline_at=st.none() | st.integers(-10, 2000).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    max_model_len=st.none() | st.integers(1, 1000),
)


@given(st.lists(VERDICTS, min_size=1, max_size=20), BOUNDS, st.integers(1, 1000))
def test_no_bound_is_ever_passed(verdicts: list[Verdict], limits: RetryLimits, budget: int) -> None:
    """Plays a turn through: each verdict answers the request that the decision before it allowed."""
    asked, spent, tries, now = first(budget, limits, 0, NOW), 0, [], NOW
    for ordinal, verdict in enumerate(verdicts, 1):
        if isinstance(asked, JobFailure):
            break
        assert asked.max_completion_tokens >= 1
        assert limits.token_budget is None or spent + asked.max_completion_tokens <= limits.token_budget
        assert limits.max_model_len is None or asked.max_completion_tokens <= limits.max_model_len
        now += timedelta(seconds=asked.after_s)
        assert limits.deadline_at is None or now < limits.deadline_at
        content = None if verdict.completion.content is None else verdict.completion.content.decode()
        tries.append(
            Attempt(1, ordinal, asked.max_completion_tokens, note=asked.note, content_hash=content, verdict=verdict)
        )
        spent += 0 if verdict.completion.usage is None else verdict.completion.usage.total
        asked = decide(tries, limits, spent, now, "key")
        raised = isinstance(asked, Again) and asked.max_completion_tokens > tries[-1].max_completion_tokens
        assert not raised or verdict.outcome is Outcome.TRUNCATION
    answers = [one for one in verdicts[: len(tries)] if one.outcome is not Outcome.TRANSPORT]
    lost = [one for one in verdicts[: len(tries)] if one.outcome is Outcome.TRANSPORT and one.cause != Cause.ABANDONED]
    assert len(answers) <= limits.attempts
    assert limits.transport is None or len(lost) <= limits.transport + 1
