"""The page "A failed conversation" is done as it is written: its commands in their order, and its presses."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from stepladder import Client
from stepladder.testing import Answer, ScriptedEngine
from support.command import call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.testing import Line, RecordedRequest
    from support.command import Came

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "failed_conversation.md").read_text()
REPLAYS = (ROOT / "docs" / "replay.md").read_text()
COMMAND = Path(sys.executable).parent / "stepladder"
JOB_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PATIENT_S = 60.0
WRONG = (38, 35, 33)


class Model:
    """Cannot multiply; one that is larger, or is told to copy the numbers, can."""

    larger = False

    def __call__(self, request: RecordedRequest) -> Line:
        question = request.text
        if "usage_query" in question:
            return Answer({"action": "usage_query", "team": "search"})
        if "rate_query" in question:
            return Answer({"action": "rate_query", "plan": "silver"})
        if "budget" in question:
            return Answer({"budget": "within", "action": "keep"})
        if "Write the summary" in question:
            return Answer({"team": "search", "plan": "silver", "hours": 12, "total": 36})
        attempt = int(request.headers["x-request-id"].rpartition("-")[2])
        right = self.larger or "Copy these numbers" in question
        return Answer({"hours": 12, "rate": 3, "total": 36 if right else WRONG[attempt - 1]})


def commands(section: str) -> list[list[str]]:
    """What stands behind a ``$`` in the console blocks between the heading and the next of its kind."""
    return [shlex.split(line[2:])[1:] for line in blocks("console", section).splitlines() if line.startswith("$ ")]


def blocks(language: str, section: str) -> str:
    return "".join(re.findall(rf"```{language}\n(.*?)```", part(section), re.DOTALL))


def part(section: str) -> str:
    """Of the page; the beginning is the part without a name."""
    parts = re.split(r"^#{2,3} (.*)\n", TEXT, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[0::2], strict=True))[section]


@dataclass
class Terminal:
    """Where the page's commands are typed: beside a system that runs."""

    url: str
    model: Model
    environment: dict[str, str]
    names: dict[str, str] = field(default_factory=dict)

    def type(self, words: list[str]) -> Came:
        return call([self.names.get(word, word) for word in words], ROOT, self.environment)

    def fail(self) -> str:
        """The job of the page."""
        self.model.larger = False
        publish, submit = commands("")[1:]
        assert self.type(publish).code == 0
        failed = self.type(submit)
        assert failed.code == 1, failed.err
        self.names["JOB"] = first_id(failed.out)
        return self.names["JOB"]


@pytest.fixture(scope="module")
def terminal(
    postgres_server: Any, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Terminal]:
    tmp_path = tmp_path_factory.mktemp("up")
    name = postgres_server.create("conversation", template=migrated_template)
    database_url = postgres_server.url_of(name)
    [up, *_] = commands("")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("STEPLADDER_")}
    environment = {**outside, "STEPLADDER_HOME": str(tmp_path / "home"), "STEPLADDER_DATABASE_URL": database_url}
    with (
        ScriptedEngine(respond=(model := Model())) as engine,
        (tmp_path / "up.log").open("wb") as log,
        subprocess.Popen(
            [str(COMMAND), *up, "--port", "0", "--json"],
            cwd=ROOT,
            env=environment | {"STEPLADDER_ENGINE_URL": engine.url},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (tmp_path / "up.log").read_text()
            yield Terminal(json.loads(line)["url"], model, environment)
        finally:
            process.terminate()
            process.wait(PATIENT_S)
    postgres_server.drop(name)


def first_id(text: str) -> str:
    found = JOB_ID.search(text)
    assert found is not None, text
    return found[0]


def said(text: str) -> str:
    return " ".join(text.split())


def test_on_the_command_line(terminal: Terminal) -> None:
    job = terminal.fail()
    find, show, raw, request = commands("Find and understand the failure")
    found = terminal.type(find)
    assert JOB_ID.findall(found.out) == [job]
    shown = terminal.type(show)
    for line in blocks("text", "Find and understand the failure").splitlines():
        assert said(line.replace("JOB", job)) in said(shown.out), shown.out
    assert shown.out.splitlines()[-1].split() == f"stepladder replay {job} --mode resume".split()
    assert all(f'"total": {total}' in terminal.type(raw).out for total in WRONG)
    assert json.loads(terminal.type(request).out)["messages"][0]["role"] == "system"

    terminal.model.larger = True
    resume, diff = commands("Resume")
    resumed = terminal.type(resume)
    assert resumed.code == 0, resumed.err
    terminal.names["NEW"] = first_id(resumed.out)
    assert [" carried " in line for line in resumed.out.splitlines() if " usage " in line or " rate " in line] == [
        True
    ] * 2
    assert "bill" in terminal.type(diff).out

    terminal.model.larger = False
    judge, fork, show, order = commands("Fork")
    judged = terminal.type(judge)
    assert (judged.code, judged.out.count("-> valid")) == (1, 3)
    forked = terminal.type(fork)
    assert forked.code == 0, forked.err
    terminal.names["NEW"] = first_id(forked.out)
    assert 'result {"team": "search", "hours": 12, "total": 36, "plan": "keep"}' in forked.out
    shown = terminal.type(show)
    assert f"replay of job {job}: fork from turn 3" in shown.out
    assert shown.out.count("(carried)") == 2  # the two tools that were not run again
    assert terminal.type(order).out.startswith("1 job would be replayed, and 3 turns ")
    with psycopg.connect(terminal.environment["STEPLADDER_DATABASE_URL"], autocommit=True) as connection:
        [query] = re.findall(r"```sql\n(.*?)```", REPLAYS, re.DOTALL)
        rows = connection.execute(query.encode()).fetchall()
    assert sorted(row[:4] for row in rows) == [
        ("attempts_exhausted", "succeeded", False, 1),
        ("attempts_exhausted", "succeeded", True, 1),
    ]


class Page(HTMLParser):
    """The forms of a page by their buttons, with all that they hold; and the words that can be pressed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: dict[str, tuple[str, dict[str, str]]] = {}
        self.words: list[str] = []
        self._form: tuple[str, dict[str, str]] | None = None
        self._pressed: list[dict[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = given.get("action", ""), {}
        elif tag == "input" and self._form is not None and given.get("type") == "hidden":
            self._form[1][given["name"]] = given["value"]
        elif tag in ("button", "summary", "label", "a"):
            self._pressed.append(given)

    def handle_data(self, data: str) -> None:
        if self._pressed and data.strip():
            self.words.append(data.strip())
            if self._form is not None and "value" in self._pressed[-1]:
                path, fields = self._form
                self.forms[data.strip()] = path, fields | {self._pressed[-1]["name"]: self._pressed[-1]["value"]}

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag in ("button", "summary", "label", "a") and self._pressed:
            self._pressed.pop()


def test_on_the_dashboard(terminal: Terminal) -> None:
    job = terminal.fail()
    pressed = re.findall(r"\*\*(.*?)\*\*", part("On the dashboard"))
    with httpx.Client(base_url=terminal.url, timeout=PATIENT_S) as browser, Client(terminal.url) as client:
        listed = browser.get("/jobs?status=failed").text
        assert f'href="/jobs/{job}"' in listed
        text = browser.get(f"/jobs/{job}").text
        assert "total must be hours times rate" in text
        shown = Page(text)
        words = [*Page(listed).words, *shown.words]
        assert {word for word in pressed if word not in words} == set()

        terminal.model.larger = True
        path, fields = shown.forms["Resume"]
        resumed = browser.post(path, data=fields)
        assert resumed.status_code == 303
        new = resumed.headers["location"]
        assert client.wait(new.rpartition("/")[2], PATIENT_S).status == "succeeded"

        terminal.model.larger = False
        path, fields = shown.forms["Fork"]
        fork = commands("Fork")[1]
        change = fork[fork.index("--set") + 1]
        forked = browser.post(path, data=fields | {"from_turn": "3", "set": change})
        assert forked.status_code == 303, forked.text
        other = forked.headers["location"].rpartition("/")[2]
        assert client.wait(other, PATIENT_S).status == "succeeded"
        assert [turn.carried for turn in client.turns(other)] == [True, True, False, False, False]
        beside = browser.get("/jobs/" + job + "/compare", params={"with": other}, follow_redirects=True)
        assert beside.status_code == 200
        assert other in beside.text
