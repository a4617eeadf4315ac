"""The result of judging many jobs again: counts, jobs that would have taken another path, and examples of each kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from stepladder.judge.revalidate import Change, report_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from stepladder.judge.revalidate import Rejudged

CHANGES: tuple[Change, ...] = get_args(Change)
MOST_EXAMPLES = 5


@dataclass(slots=True)
class Drift:
    """Grows by ``add``. ``changed`` counts attempts by the kind of their change, and ``jobs`` the jobs that have one.

    ``skipped`` counts jobs that could not be judged again at all, by the reason.
    """

    attempts: int = 0
    judged: int = 0
    jobs_seen: int = 0
    reworded: int = 0
    changed: Counter[Change] = field(default_factory=Counter)
    jobs: dict[Change, list[UUID]] = field(default_factory=lambda: {change: [] for change in CHANGES})
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[Change, list[dict[str, Any]]] = field(default_factory=lambda: {change: [] for change in CHANGES})

    def add(self, job_id: UUID, attempts: Sequence[Rejudged]) -> None:
        """One job, with all its attempts."""
        self.jobs_seen += 1
        seen: set[Change] = set()
        for one in attempts:
            self.attempts += 1
            if one.now is None:
                self.unjudged[one.why or ""] += 1
                continue
            self.judged += 1
            self.reworded += one.reworded
            change = one.change
            if change is None:
                continue
            seen.add(change)
            self.changed[change] += 1
            self.moves[_word(one.was.outcome, one.was.cause), _word(one.now.outcome, one.now.cause)] += 1
            if len(self.examples[change]) < MOST_EXAMPLES:
                self.examples[change].append({"job": str(job_id)} | report_of(one).model_dump(exclude_unset=True))
        for change in seen:
            self.jobs[change].append(job_id)

    def skip(self, reason: str) -> None:
        """A job that could not be judged again."""
        self.skipped[reason] += 1

    @property
    def total(self) -> int:
        """The attempts whose verdict is another now."""
        return self.changed.total()

    @property
    def changed_jobs(self) -> int:
        return len({job for jobs in self.jobs.values() for job in jobs})

    def as_json(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs_seen,
            "attempts": self.attempts,
            "judged": self.judged,
            "changed": self.total,
            "changed_jobs": self.changed_jobs,
            "reworded": self.reworded,
            "changes": {
                change: {
                    "attempts": self.changed[change],
                    "jobs": [str(job) for job in self.jobs[change]],
                    "examples": self.examples[change],
                }
                for change in CHANGES
            },
            "moves": [{"was": was, "now": now, "attempts": count} for (was, now), count in self.moves.most_common()],
            "unjudged": dict(self.unjudged),
            "skipped": dict(self.skipped),
        }


def _word(outcome: str, cause: str | None) -> str:
    return f"{outcome} ({cause})" if cause else str(outcome)
