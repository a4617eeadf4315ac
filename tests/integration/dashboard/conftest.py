"""The dashboard on a real socket, and a client of it that follows no redirect by itself."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
import pytest_asyncio

from support.database import DELETE_ALL
from support.site import Site, open_site

if TYPE_CHECKING:
    from uuid import UUID

HERE = Path(__file__).parent


@dataclass
class Visitor:
    """A client like a browser without scripts."""

    site: Site
    client: httpx.AsyncClient

    async def page(self, path: str, status: int = 200, **options: Any) -> str:
        answer = await self.client.get(path, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return answer.text

    async def job(self, job_id: UUID) -> str:
        return await self.page(f"/jobs/{job_id}")

    async def post(self, path: str, page: str, **fields: str) -> httpx.Response:
        """Sends a form of a page, with the page's token."""
        return await self.client.post(path, data={"token": token_of(page), **fields})


def token_of(page: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', page)
    assert found is not None, "the page has no form with a token"
    return found[1]


Visit = Callable[..., Awaitable[Visitor]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module share an event loop and a database."""
    for item in items:
        if item.path.parent == HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(scope="module")
def site_database_url(postgres_server: Any, migrated_template: str) -> Iterator[str]:
    name = postgres_server.create("dashboard", template=migrated_template)
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest_asyncio.fixture(loop_scope="module")
async def sites(site_database_url: str) -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    """Gives the test its site: a site counts what it has seen, so it must start with an empty database."""
    found: dict[str, Site] = {}
    async with AsyncExitStack() as stack:

        async def site(**options: Any) -> Site:
            if (key := repr(options)) not in found:
                found[key] = await stack.enter_async_context(open_site(site_database_url, **options))
            return found[key]

        yield site


@pytest_asyncio.fixture(loop_scope="module")
async def visit(site_database_url: str, sites: Callable[..., Awaitable[Site]]) -> AsyncIterator[Visit]:
    """Gives visitors. The database is empty at first."""
    async with await psycopg.AsyncConnection.connect(site_database_url) as connection:
        await connection.execute(DELETE_ALL)
    async with AsyncExitStack() as stack:

        async def visit(**options: Any) -> Visitor:
            site = await sites(**options)
            site.notified.clear()
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=site.url, timeout=30))
            return Visitor(site, client)

        yield visit


@pytest_asyncio.fixture(loop_scope="module")
async def visitor(visit: Visit) -> Visitor:
    return await visit()
