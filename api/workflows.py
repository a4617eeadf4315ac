"""Routes: publish a workflow, and see what is published."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import JSON_TYPES, UNSAID, media_type, read_body
from stepladder.api.parts import Publisher, Reader, Wired
from stepladder.api.problems import Mistake, ProblemError, invalid, not_found
from stepladder.api.shapes import Document, Publication, Workflows
from stepladder.api.specification import answered, problems
from stepladder.api.views import finding_json, finding_more, version_json
from stepladder.models.records import Publication as Published
from stepladder.runner.machines import output_schemas
from stepladder.workflows.check import check_document

if TYPE_CHECKING:
    from stepladder.schemas.finding import Finding

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
EXAMPLE = """\
name: usage-bill
version: 1
input: {type: object, properties: {hours: {type: integer}}, required: [hours]}
start: bill
states:
  bill:
    ask: "{{ input.hours }} hours at 3 dollars. Give the total."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules:
      - {id: arithmetic, check: "output.total == input.hours * 3", pointer: /total, reason: "must be hours times 3"}
    next: done
  done: {end: succeeded, result: {total: "turns.bill.total"}}
"""
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/yaml": {"schema": {"type": "string"}, "example": EXAMPLE},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}

Name = Annotated[str, Path(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.post(
    "",
    status_code=201,
    openapi_extra=BODY,
    responses={
        201: answered(Publication, "Published"),
        200: answered(Publication, "Published already, with the same definition"),
        **problems(409, body=True),
    },
)
async def publish_workflow(request: Request, parts: Wired, _: Publisher) -> JsonAnswer:
    """Publish a version of a workflow, YAML 1.2 or JSON. A published version never changes."""
    text = await _text(request)
    compiled = await asyncio.to_thread(check_document, text, parts.machines.kit)
    machine = compiled.machine
    if machine is None:
        raise _rejected(compiled.errors)
    published = await parts.store.publish(machine.name, machine.version, machine.hash, machine.document.definition())
    if published is Published.DEFINITION_CHANGED:
        detail = f"workflow {machine.name} {machine.version} is published with another definition"
        remedy = f"a published version never changes: write version {machine.version + 1}"
        mistakes = [Mistake("this version is taken", "/version")]
        raise ProblemError(409, "definition-changed", detail, mistakes=mistakes, remedy=remedy)
    await parts.store.keep_schemas(output_schemas(machine))
    row = await parts.store.workflow(machine.name, machine.version)
    if row is None:
        raise LookupError(f"workflow {machine.name} {machine.version} has vanished from the store")
    answer = version_json(row) | {"warnings": [finding_json(finding) for finding in compiled.findings]}
    location = {"Location": f"/v1/workflows/{machine.name}/{machine.version}"}
    return JsonAnswer(answer, 201 if published is Published.PUBLISHED else 200, location)


@router.get("", responses={200: answered(Workflows, "Every version, by name and version"), **problems()})
async def list_workflows(parts: Wired, _: Reader) -> JsonAnswer:
    """Every published version."""
    return JsonAnswer({"workflows": [version_json(version) for version in await parts.reads.workflows()]})


@router.get("/{name}/{version}", responses={200: answered(Document, "The version and its definition"), **problems(404)})
async def get_workflow(name: Name, version: Version, parts: Wired, _: Reader) -> JsonAnswer:
    """One version with its definition, without what merely repeats a default."""
    row = await parts.store.workflow(name, version)
    if row is None:
        raise not_found(f"workflow {name} {version}", "list what is published with GET /v1/workflows")
    return JsonAnswer(version_json(row) | {"document": row.document})


async def _text(request: Request) -> str:
    kind = media_type(request)
    if kind not in YAML_TYPES + JSON_TYPES + UNSAID and not kind.endswith(("+json", "+yaml")):
        detail, remedy = f"the body is {kind}", "send YAML as application/yaml, or JSON as application/json"
        raise ProblemError(415, "unsupported-media-type", detail, remedy=remedy)
    body = await read_body(request)
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mistakes = [Mistake(f"byte {error.start} is no character in UTF-8")]
        raise ProblemError(400, "bad-text", "the document is no UTF-8 text", mistakes=mistakes) from None


def _rejected(findings: tuple[Finding, ...]) -> ProblemError:
    mistakes = [Mistake(finding.message, finding.pointer, more=finding_more(finding)) for finding in findings]
    count = f"{len(findings)} error" + ("" if len(findings) == 1 else "s")
    return invalid(f"the workflow document has {count}", mistakes, "mend them; nothing was published")
