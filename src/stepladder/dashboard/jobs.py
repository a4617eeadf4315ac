"""The page at ``/jobs``: the jobs, newest first, by filters that the URL spells as the API does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from stepladder.api.cursors import decode, encode
from stepladder.api.problems import ProblemError
from stepladder.dashboard.context import context_of
from stepladder.dashboard.rendering import page
from stepladder.queries.where import KNOWN, METADATA, WhereError, filter_of
from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.schemas.job_filter import JobFilter

PER_PAGE = 50
LONGEST = 1000
FOLDED = ("cause", "rule", "state", "principal", "parent", "replay_of")
"""The filters that the form keeps folded."""
WRONG_CURSOR = "The cursor in the URL belongs to other filters. This is the first page."


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a URL as pairs, the query they make, and what is wrong with those that are left out."""

    pairs: tuple[tuple[str, str], ...]
    query: JobFilter
    mistakes: tuple[str, ...] = ()

    def values(self, name: str) -> list[str]:
        return [text for key, text in self.pairs if key == name]

    def value(self, name: str) -> str:
        return next(iter(self.values(name)), "")

    @property
    def metadata(self) -> str:
        """As it is typed into the form."""
        return " ".join(f"{key.removeprefix(METADATA)}={text}" for key, text in self.pairs if key.startswith(METADATA))

    @property
    def described(self) -> list[str]:
        return [f"{key} {text}".replace("_", " ") for key, text in self.pairs]

    @property
    def unfolded(self) -> bool:
        return any(key in FOLDED for key, _ in self.pairs)

    def url(self, *more: tuple[str, str]) -> str:
        return _url([*self.pairs, *more])


async def list_jobs(request: Request) -> Response:
    """Filters and cursor are in the URL, so that a page can be bookmarked and shared."""
    items = request.query_params.multi_items()
    pairs = _without_empty(items)
    if pairs != items:
        return RedirectResponse(_url(pairs), 303)
    context, filters = context_of(request), _filters(items)
    mistakes, after = list(filters.mistakes), None
    if cursor := request.query_params.get("cursor"):
        try:
            after = decode(cursor, filters.pairs)
        except ProblemError:
            mistakes.append(WRONG_CURSOR)
    found = await context.services.reads.page(filters.query, PER_PAGE, after)
    _, counts = await context.tally()
    return page(
        request,
        "jobs.html",
        422 if mistakes else 200,
        jobs=found.jobs,
        looked_back_to=found.looked_back_to,
        filters=filters,
        mistakes=mistakes,
        older=None if found.following is None else filters.url(("cursor", encode(found.following, filters.pairs))),
        newest=filters.url() if after is not None else None,
        counts=counts,
        total=sum(counts.values()),
        workflows=list(dict.fromkeys(version.name for version in await context.services.reads.workflows())),
        base=str(request.base_url).rstrip("/"),
        outcomes=list(Outcome),
        failures=list(Failure),
    )


def _url(pairs: Sequence[tuple[str, str]]) -> str:
    return f"/jobs?{urlencode(pairs)}" if pairs else "/jobs"


def _without_empty(items: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs without those that a form left empty; its field ``metadata`` holds ``KEY=VALUE`` words."""
    pairs: list[tuple[str, str]] = []
    for name, text in items:
        if name == "metadata":
            words = [word.partition("=") for word in text.split()]
            pairs += [(METADATA + key, value) for key, sign, value in words if key and sign]
        elif text.strip():
            pairs.append((name, text.strip()))
    return pairs


def _filters(items: Sequence[tuple[str, str]]) -> Filters:
    known = [(name, text) for name, text in items if name in KNOWN or name.startswith(METADATA)]
    pairs = [(name, text) for name, text in known if "\0" not in name + text and len(text) <= LONGEST]
    mistakes = ["A value is too long or not text, and was left out."] if len(pairs) < len(known) else []
    where: dict[str, list[str]] = {}
    for name, text in pairs:
        where.setdefault(name, []).append(text)
    for name, texts in list(where.items()):
        try:
            filter_of({name: texts})
        except WhereError as error:
            mistakes.append(f"{error}.")
            del where[name]
    return Filters(tuple(pairs), filter_of(where), tuple(mistakes))
