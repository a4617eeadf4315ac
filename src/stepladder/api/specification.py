"""The parts of the specification that FastAPI cannot see: bodies that routes read themselves, and problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepladder.api.problems import MEDIA_TYPE, Problem
from stepladder.schemas.shape import ResponseModel

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

TITLES = {
    400: "The body cannot be read",
    401: "No key, or an unknown one",
    403: "The key lacks a scope",
    404: "Not found",
    405: "The route takes other methods",
    408: "The body did not arrive in time",
    409: "A conflict with the current state",
    410: "Removed by retention",
    413: "The body is too large",
    415: "The body has another media type",
    422: "The request has mistakes",
    500: "A bug in the server",
    503: "A server that is needed does not answer",
}
ALWAYS = (401, 403, 422, 500, 503)
WITH_BODY = (400, 408, 413, 415)


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The problems of a route, with those that every route has."""
    listed = sorted({*ALWAYS, *statuses, *(WITH_BODY if body else ())})
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": TITLES[status], "content": content} for status in listed}


def answered(model: Any, description: str) -> dict[str, Any]:
    """A JSON answer."""
    return {"model": model, "description": description}


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """A JSON body that the route reads itself."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _models(*bases: type[BaseModel]) -> list[type[BaseModel]]:
    return [*bases, *(found for base in bases for found in _models(*base.__subclasses__()))]


def describe(app: FastAPI, bodies: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    """The whole specification (OpenAPI 3.1), made once."""
    if app.openapi_schema is None:
        spec = type(app).openapi(app)
        schemas = spec.setdefault("components", {}).setdefault("schemas", {})
        # FastAPI drops every null, those in examples too, so each schema is written again.
        known = [model for model in _models(ResponseModel) if model.__name__ in schemas]
        models: list[type[BaseModel]] = [*bodies, Problem, *known]
        for model in models:
            mode: JsonSchemaMode = "validation" if model in bodies else "serialization"
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}", mode=mode)
            schemas |= schema.pop("$defs", {})
            schemas[model.__name__] = schema
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        spec["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        spec["security"] = [{"key": []}]
        app.openapi_schema = spec
    return app.openapi_schema
