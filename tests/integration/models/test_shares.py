"""How processes divide an engine among them, by the database's own word."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from stepladder.models.database import Database
from stepladder.models.ids import uuid7
from stepladder.models.shares import EngineUse, engines_used, leave_engine, renew_share

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

ENGINE = "http://gpu-1:8000/v1"


class Member:
    """A process that keeps its promise: it keeps what it has, or less where it is due less."""

    def __init__(self, database: Database, bound: int) -> None:
        self.id: UUID = uuid7()
        self.database = database
        self.bound = bound
        self.wanted = self.has = self.limit = 0

    async def renew(self, *, lease_s: float = 60.0) -> None:
        in_use = min(self.limit, self.wanted)
        found = await renew_share(
            self.database,
            ENGINE,
            self.id,
            self.bound,
            keep=self.limit,
            in_use=in_use,
            wanted=self.wanted,
            lease_s=lease_s,
        )
        self.has, self.limit = found.share, min(found.share, found.due)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database


async def settled(*members: Member) -> list[int]:
    for _ in range(3):
        for member in members:
            await member.renew()
    return [member.limit for member in members]


async def test_who_is_alone_has_all_of_it(database: Database) -> None:
    alone = Member(database, 10)
    await alone.renew()
    assert alone.limit == 10
    assert await engines_used(database) == [EngineUse(ENGINE, 10, 0, 0, 1)]


@pytest.mark.parametrize(
    ("bound", "wanted", "shares"),
    [
        (10, [100, 100], {5}),
        (9, [100, 100, 100], {3}),
        (10, [2, 100], {2, 8}),
        (10, [2, 3, 100, 100], {2, 3}),
        (10, [0, 100], {0, 10}),
        (10, [1, 1], {5}),
        (7, [0, 100, 100, 3], {0, 2, 3}),
        (0, [5, 5], {0}),
    ],
)
async def test_it_is_divided_max_min_by_what_each_wants(
    database: Database, bound: int, wanted: list[int], shares: set[int]
) -> None:
    members = [Member(database, bound) for _ in wanted]
    for member, want in zip(members, wanted, strict=True):
        member.wanted = want
    found = await settled(*members)
    assert sum(found) <= bound
    assert set(found) <= shares | {share + 1 for share in shares}
    if bound:
        assert sum(found) == bound


async def test_who_joins_gets_what_the_others_give_back_and_never_before(database: Database) -> None:
    first, second = Member(database, 10), Member(database, 10)
    first.wanted = second.wanted = 100
    await first.renew()
    await second.renew()
    assert (first.limit, second.limit) == (10, 0)
    await first.renew()  # hears that it is due 5, and uses no more than that from now on
    await second.renew()
    assert (first.limit, second.limit) == (5, 0)
    await first.renew()  # says so
    await second.renew()
    assert (first.limit, second.limit) == (5, 5)


async def test_a_share_that_is_not_renewed_lapses_and_one_that_is_left_is_free_at_once(database: Database) -> None:
    dead, left, lives = Member(database, 9), Member(database, 9), Member(database, 9)
    for member in (dead, left, lives):
        member.wanted = 100
    assert sum(await settled(dead, left, lives)) == 9
    await leave_engine(database, ENGINE, left.id)
    await dead.renew(lease_s=0.0)
    await lives.renew()
    assert lives.has == 9
    assert [use.workers for use in await engines_used(database)] == [1]


async def test_of_different_bounds_the_smallest_holds(database: Database) -> None:
    old, new = Member(database, 10), Member(database, 4)
    old.wanted = new.wanted = 100
    assert sum(await settled(old, new)) == 4


async def test_engines_do_not_share_with_each_other(database: Database) -> None:
    await renew_share(database, "http://a/v1", uuid7(), 3, keep=0, in_use=0, wanted=9, lease_s=60.0)
    other = await renew_share(database, "http://b/v1", uuid7(), 5, keep=0, in_use=0, wanted=9, lease_s=60.0)
    assert other.share == 5


@pytest.mark.parametrize("seed", range(6))
async def test_the_shares_never_add_up_to_more_than_the_bound(database: Database, seed: int) -> None:
    chance, bound = random.Random(seed), seed * 3  # noqa: S311 -- no secret
    members: list[Member] = []
    for _ in range(120):
        what = chance.random()
        if what < 0.1 or not members:
            members.append(Member(database, bound))
        elif what < 0.15:
            gone = members.pop(chance.randrange(len(members)))
            await leave_engine(database, ENGINE, gone.id)
        elif what < 0.2:
            await members.pop(chance.randrange(len(members))).renew(lease_s=0.0)
        else:
            member = chance.choice(members)
            member.wanted = chance.choice((0, 1, 2, bound, 1000))
            await member.renew()
        assert sum(member.has for member in members) <= bound
        assert all(member.limit <= member.has for member in members)
