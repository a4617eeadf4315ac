"""The dashboard on a real socket, and a client of it that follows no redirect by itself."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.site import Site, open_site

if TYPE_CHECKING:
    from uuid import UUID


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


@asynccontextmanager
async def visits(database_url: str) -> AsyncIterator[Visit]:
    """Gives visitors, of one site or each of a site of their own."""
    async with AsyncExitStack() as stack:

        async def visit(site: Site | None = None, **options: Any) -> Visitor:
            found = await stack.enter_async_context(open_site(database_url, **options)) if site is None else site
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=found.url, timeout=30))
            return Visitor(found, client)

        yield visit


@pytest.fixture
async def visit(database_url: str) -> AsyncIterator[Visit]:
    async with visits(database_url) as visit:
        yield visit


@pytest.fixture
async def visitor(visit: Visit) -> Visitor:
    return await visit()
