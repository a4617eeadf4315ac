"""The pages in a real browser: pictures, widths, and a job that moves while it is looked at."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from stepladder.testing import Answer
from support import scenes
from support.site import RIGHT, USAGE, WRONG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from .conftest import Visit, Visitor

pytestmark = pytest.mark.long

pytestmark = pytest.mark.skipif(scenes.missing() is not None and "CI" not in os.environ, reason=str(scenes.missing()))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with scenes.browser() as started:
        yield started


async def assert_fits(page: Page) -> None:
    """No horizontal scrolling, and no text with too little contrast."""
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= await page.evaluate("window.innerWidth"), page.url
    pale = await page.evaluate(CONTRAST)
    assert not pale, (page.url, pale)


CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest("option")) continue;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...found];
}"""


async def test_every_page_fits_its_window_and_has_enough_contrast(visitor: Visitor, browser: Browser) -> None:
    scene_list = [scenes.Scene("empty", "/"), scenes.Scene("empty-phone", "/", scenes.PHONE)]
    for make in (None, scenes.few_jobs, scenes.many_jobs):
        for scene in scene_list if make is None else await make(visitor.site):
            if (scene.width, scene.scheme) == (scenes.WIDE, "light"):
                continue
            path = visitor.site.url + scene.path
            async with scenes.opened(browser, path, width=scene.width, scheme=scene.scheme) as page:
                for folded in await page.locator("details").all():
                    await folded.evaluate("(details) => { details.open = true; }")
                await assert_fits(page)


async def test_a_job_moves_on_the_page_without_a_reload(visitor: Visitor, browser: Browser) -> None:
    job = await visitor.site.submit()
    async with scenes.opened(browser, f"{visitor.site.url}/jobs/{job}") as page:
        await page.evaluate("window.sameDocument = true")
        async with visitor.site.worker(USAGE, WRONG, Answer(RIGHT, delay_s=0.2)) as driver:
            driving = asyncio.create_task(driver.drive(job))
            await page.get_by_role("heading", name="Send the signal approval").wait_for()
            await driving
        assert await page.locator(".visit").count() == 4
        assert await page.locator(".attempt").count() == 3
        await page.locator("#t2-a2-note summary").click()
        await page.get_by_label("Action").select_option("approve")
        await page.get_by_label("Other fields").fill('{"by": "me"}')
        await page.get_by_role("button", name="Send").click()
        await page.get_by_text("signal approval", exact=False).first.wait_for()
        await visitor.site.drive(job)
        await page.locator("#head .badge", has_text="succeeded").wait_for()
        await page.locator("#live-note:empty").wait_for(state="attached")
        assert await page.get_by_role("button").all_inner_texts() == ["Judge again"]


async def test_without_scripts_everything_works_by_reloading(visitor: Visitor, browser: Browser) -> None:
    job = await visitor.site.run(USAGE, RIGHT)
    async with scenes.opened(browser, f"{visitor.site.url}/jobs/{job}", java_script_enabled=False) as page:
        assert await page.get_by_text("Reload the page").is_visible()
        await page.get_by_label("Action").select_option("approve")
        async with page.expect_navigation():
            await page.get_by_role("button", name="Send").click()
        await visitor.site.drive(job)
        await page.reload()
        assert await page.locator("#head .badge").inner_text() == "✓ succeeded"


async def test_the_keyboard_reaches_the_content_and_shows_where_it_is(visitor: Visitor, browser: Browser) -> None:
    async with scenes.opened(browser, visitor.site.url) as page:
        await page.keyboard.press("Tab")
        first = page.locator(":focus")
        assert await first.inner_text() == "Skip to content"
        assert await first.evaluate("(one) => getComputedStyle(one).outlineStyle") == "solid"
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"


async def test_logging_in_and_out_by_hand(visit: Visit, browser: Browser) -> None:
    from .test_login import KEYS

    visitor = await visit(keys=KEYS)
    await visitor.site.submit()
    async with scenes.opened(browser, visitor.site.url) as page:
        assert await page.locator(":focus").get_attribute("name") == "key"
        await page.keyboard.type("b-key")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Job").wait_for()
        await assert_fits(page)
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_role("heading", name="Log in").wait_for()
