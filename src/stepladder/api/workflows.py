"""Routes: publish workflows, list them, and pause or retire them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import JSON_TYPES, UNSAID, media_type, read_body
from stepladder.api.dependencies import Publisher, Reader, Services, ServicesDep
from stepladder.api.problems import Mistake, ProblemError, finding_more, invalid, not_found
from stepladder.api.specification import answered, problems
from stepladder.lint.check import check_document
from stepladder.lint.graph import nobody_else
from stepladder.models import versions
from stepladder.models.records import Publication, Receipt
from stepladder.runner.machines import output_schemas
from stepladder.schemas.published import (
    DocumentWarning,
    PublishedWorkflow,
    WorkflowDocument,
    WorkflowVersion,
    WorkflowVersions,
)

if TYPE_CHECKING:
    from stepladder.schemas.finding import Finding

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
EXAMPLE = """\
name: usage-bill
version: 1
input: {type: object, properties: {hours: {type: integer, minimum: 0, maximum: 1000}}, required: [hours]}
start: bill
states:
  bill:
    ask: "{{ input.hours }} hours at 3 dollars. Give the total."
    output:
      type: object
      properties: {total: {type: integer, minimum: 0, maximum: 3000}}
      required: [total]
      additionalProperties: false
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
        201: answered(PublishedWorkflow, "Published"),
        200: answered(PublishedWorkflow, "Already published with the same definition"),
        **problems(409, body=True),
    },
)
async def publish_workflow(request: Request, services: ServicesDep, _: Publisher) -> JsonAnswer:
    """Publish a version of a workflow, YAML 1.2 or JSON. A published version never changes."""
    text = await _text(request)
    compiled = await asyncio.to_thread(check_document, text, services.machines.kit)
    machine = compiled.machine
    if machine is None:
        raise _rejected(compiled.errors)
    published = await services.store.publish(machine.name, machine.version, machine.hash, machine.document.definition())
    if published is Publication.DEFINITION_CHANGED:
        detail = f"workflow {machine.name} {machine.version} is published with another definition"
        remedy = f"a published version never changes: write version {machine.version + 1}"
        mistakes = [Mistake("this version is taken", "/version")]
        raise ProblemError(409, "definition-changed", detail, mistakes=mistakes, remedy=remedy)
    await services.store.keep_schemas(output_schemas(machine))
    row = await services.store.workflow(machine.name, machine.version)
    if row is None:
        raise LookupError(f"workflow {machine.name} {machine.version} has vanished from the store")
    found = compiled.findings if services.access.wants_key else (*compiled.findings, *nobody_else(machine.document))
    warnings = tuple(
        DocumentWarning(pointer=finding.pointer, reason=finding.message, **finding_more(finding)) for finding in found
    )
    answer = PublishedWorkflow(**dict(WorkflowVersion.model_validate(row)), warnings=warnings)
    location = {"Location": f"/v1/workflows/{machine.name}/{machine.version}"}
    return JsonAnswer(answer, 201 if published is Publication.PUBLISHED else 200, location)


@router.get("", responses={200: answered(WorkflowVersions, "Every version, by name and version"), **problems()})
async def list_workflows(services: ServicesDep, _: Reader) -> JsonAnswer:
    """Every published version."""
    return JsonAnswer(WorkflowVersions(workflows=await services.reads.workflows()))


SWITCHED = {
    202: answered(WorkflowVersions, "Done; the versions as they are now"),
    200: answered(WorkflowVersions, "Nothing changed"),
    **problems(404),
}


@router.post("/{name}/pause", status_code=202, responses=SWITCHED)
async def pause_workflow(name: Name, services: ServicesDep, principal: Publisher) -> JsonAnswer:
    """Pause all jobs of the workflow, those of future versions too. New jobs are accepted, and paused.

    Attempts and tools in flight are finished; deadlines are suspended.
    """
    return await _switched(services, name, None, await versions.pause(services.store, name, None, principal.name))


@router.post("/{name}/unpause", status_code=202, responses=SWITCHED)
async def unpause_workflow(name: Name, services: ServicesDep, principal: Publisher) -> JsonAnswer:
    """Continue the jobs of all its versions where they were."""
    return await _switched(services, name, None, await versions.unpause(services.store, name, None, principal.name))


@router.post("/{name}/{version}/pause", status_code=202, responses=SWITCHED)
async def pause_version(name: Name, version: Version, services: ServicesDep, principal: Publisher) -> JsonAnswer:
    """Pause the jobs of one version."""
    return await _switched(services, name, version, await versions.pause(services.store, name, version, principal.name))


@router.post("/{name}/{version}/unpause", status_code=202, responses=SWITCHED)
async def unpause_version(name: Name, version: Version, services: ServicesDep, principal: Publisher) -> JsonAnswer:
    """Continue the jobs of one version where they were."""
    return await _switched(
        services, name, version, await versions.unpause(services.store, name, version, principal.name)
    )


@router.post("/{name}/{version}/retire", status_code=202, responses=SWITCHED)
async def retire_version(name: Name, version: Version, services: ServicesDep, _: Publisher) -> JsonAnswer:
    """Accept no new jobs of the version. Existing ones continue, on this version."""
    return await _switched(services, name, version, await versions.retire(services.store, name, version))


@router.post("/{name}/{version}/unretire", status_code=202, responses=SWITCHED)
async def unretire_version(name: Name, version: Version, services: ServicesDep, _: Publisher) -> JsonAnswer:
    """Accept new jobs of the version again."""
    return await _switched(services, name, version, await versions.retire(services.store, name, version, retired=False))


async def _switched(services: Services, name: str, version: int | None, receipt: Receipt) -> JsonAnswer:
    if receipt is Receipt.UNKNOWN:
        what = f"workflow {name}" if version is None else f"workflow {name} {version}"
        raise not_found(what, "list what is published with GET /v1/workflows")
    versions = await services.reads.workflows()
    named = tuple(one for one in versions if one.name == name and version in (None, one.version))
    return JsonAnswer(WorkflowVersions(workflows=named), 202 if receipt is Receipt.ACCEPTED else 200)


@router.get(
    "/{name}/{version}", responses={200: answered(WorkflowDocument, "The version and its definition"), **problems(404)}
)
async def get_workflow(name: Name, version: Version, services: ServicesDep, _: Reader) -> JsonAnswer:
    """One version with its document, without fields that repeat a default."""
    row = await services.store.workflow(name, version)
    if row is None:
        raise not_found(f"workflow {name} {version}", "list what is published with GET /v1/workflows")
    return JsonAnswer(WorkflowDocument.model_validate(row))


async def _text(request: Request) -> str:
    kind = media_type(request)
    if kind not in YAML_TYPES + JSON_TYPES + UNSAID and not kind.endswith(("+json", "+yaml")):
        detail, remedy = f"the body is {kind}", "send YAML as application/yaml, or JSON as application/json"
        raise ProblemError(415, "unsupported-media-type", detail, remedy=remedy)
    body = await read_body(request)
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mistakes = [Mistake(f"byte {error.start} is not valid UTF-8")]
        raise ProblemError(400, "bad-text", "the document is not UTF-8 text", mistakes=mistakes) from None


def _rejected(findings: tuple[Finding, ...]) -> ProblemError:
    mistakes = [Mistake(finding.message, finding.pointer, more=finding_more(finding)) for finding in findings]
    count = f"{len(findings)} error" + ("" if len(findings) == 1 else "s")
    return invalid(f"the workflow document has {count}", mistakes, "fix them; nothing was published")
