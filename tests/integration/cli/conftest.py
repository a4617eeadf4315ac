"""The command line in a folder of documents, with one database and one engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from stepladder.models.tables import metadata
from stepladder.testing import Fault, ScriptedEngine
from support.command import call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from signal import Signals

    from stepladder.testing import Line, RecordedRequest

COMMAND = Path(sys.executable).parent / "stepladder"
KEY = "sk-engine-key-4711"

APP = """
import stepladder

@stepladder.tool("look_up", effect="read")
def look_up(team: str) -> dict:
    return {"hours": 12}

@stepladder.tool("pay", effect="irreversible")
def pay(cents: int) -> dict:
    raise stepladder.EffectUnknownError("the bank broke off")
"""

BILL = """
name: bill
version: 1
input: {type: object, properties: {team: {type: string, maxLength: 40}}, required: [team], additionalProperties: false}
system: The system prompt, which no log may show.
start: look
states:
  look:
    tool: look_up
    arguments: {team: input.team}
    next: {ok: sum, error: broken}
  sum:
    ask: "{{ input.team }} used {{ tools.look.hours }} hours at 3 dollars."
    output:
      type: object
      properties: {total: {type: integer, minimum: 0, maximum: 999}}
      required: [total]
      additionalProperties: false
    rules:
      - {id: arithmetic, check: "output.total == tools.look.hours * 3", pointer: /total, reason: must be hours times 3}
    next: approve
  approve:
    wait:
      signal: approval
      schema: {type: object, properties: {action: {enum: [approve, refuse]}}, required: [action]}
    next: {approve: done, refuse: broken}
  done: {end: succeeded, result: {total: turns.sum.total}}
  broken: {end: failed}
"""


PAYING = """
name: paying
version: 1
start: confirm
states:
  confirm: {wait: {signal: confirmation}, next: {go: pay}}
  pay: {tool: pay, arguments: {cents: "36"}, next: {ok: done, error: left}}
  done: {end: succeeded, result: tools.pay}
  left: {end: failed, result: errors.pay.kind}
"""


class Model:
    """Says 35, and 36 after a rejection. Never answers the first request of a question for patience."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, request: RecordedRequest) -> Line:
        question = request.text.splitlines()[0]
        if "patience" in question and question not in self._seen:
            self._seen.add(question)
            return Fault("hang")
        return {"total": 36} if "not accepted" in request.text else {"total": 35}


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def logs(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.err.splitlines() if line.startswith("{")]


@dataclass
class Shell:
    """Runs the command in ``folder`` against one database and one engine. A variable of None is not set."""

    folder: Path
    database_url: str
    engine: ScriptedEngine
    variables: dict[str, str | None] = field(default_factory=dict)

    def _environment(self, variables: dict[str, str | None]) -> dict[str, str]:
        ours: dict[str, str | None] = {
            "STEPLADDER_DATABASE_URL": self.database_url,
            "STEPLADDER_ENGINE_URL": self.engine.url,
            "STEPLADDER_ENGINE_API_KEY": KEY,
            "STEPLADDER_APP": "app",
            "STEPLADDER_HOME": str(self.folder / "home"),
        }
        outside = {name: value for name, value in os.environ.items() if not name.startswith("STEPLADDER_")}
        together = {**outside, **ours, **self.variables, **variables}
        return {name: value for name, value in together.items() if value is not None}

    @contextmanager
    def start(self, *words: str, **variables: str | None) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [str(COMMAND), *words],
            cwd=self.folder,
            env=self._environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *words: str, **variables: str | None) -> Done:
        """The command within this process: a process of its own takes a second to start."""
        done = Done(*call(words, self.folder, self._environment(variables)))
        assert "Traceback" not in done.err, done.err
        return done

    def ok(self, *words: str, **variables: str | None) -> Done:
        done = self.run(*words, **variables)
        assert done.code == 0, done.err
        return done

    def refused(self, *words: str, **variables: str | None) -> str:
        """What a command that is bad input says, on one line. Nothing is stored or printed."""
        before = self.counts()
        done = self.run(*words, **variables)
        assert (done.code, done.out) == (2, ""), done.err
        assert self.counts() == before
        return " ".join(done.err.split())

    def run_process(self, *words: str, **variables: str | None) -> Done:
        """The command in a process of its own, for one that starts another program."""
        with self.start(*words, **variables) as process:
            out, err = process.communicate(timeout=60)
        return Done(process.returncode, out, err)

    def end(self, process: subprocess.Popen[str], ending: Signals) -> Done:
        process.send_signal(ending)
        out, err = process.communicate(timeout=60)
        return Done(process.returncode, out, err)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def rows(self, query: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(query, parameters).fetchall()

    def counts(self) -> dict[str, int]:
        """The number of rows in every table."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return {
                table.name: len(connection.execute(SQL("SELECT FROM {}").format(Identifier(table.name))).fetchall())
                for table in metadata.sorted_tables
            }


@pytest.fixture(scope="session")
def cli_database_url(postgres_server: Any, migrated_template: str) -> Iterator[str]:
    name = postgres_server.create("cli", template=migrated_template)
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def shell(cli_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("work")
    with ScriptedEngine(respond=Model(), api_key=KEY) as engine:
        shell = Shell(folder, cli_database_url, engine)
        shell.write("app.py", APP)
        shell.write("bill.yaml", BILL)
        shell.write("paying.yaml", PAYING)
        yield shell


@pytest.fixture(scope="session")
def waiting_job(shell: Shell) -> str:
    """A job that waits for its approval, with a wrong and a right answer behind it."""
    done = shell.run("run", "bill.yaml", "--input", '{"team": "search"}', "--json")
    assert done.code == 0, done.err
    return str(done.json["id"])
