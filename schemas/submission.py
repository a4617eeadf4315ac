"""A job as it is asked for, over HTTP or on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import JsonObject

MOST_JOBS = 1000
LONGEST_DEADLINE_S = 10 * 365 * 86400.0
LONGEST_TEXT = 1000


def _metadata_value(value: Any) -> Any:
    if not isinstance(value, str | bool | int | float):
        raise ValueError("must be a string, a number, true or false")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"must have at most {LONGEST_TEXT} characters, not {len(value)}")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("the character \\u0000 cannot be stored here")
    return value


MetadataValue: TypeAlias = Annotated[
    Any, BeforeValidator(_metadata_value), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
MetadataKey: TypeAlias = Annotated[str, Field(pattern=r"^[^\x00]+$", max_length=100)]


class JobRequest(BaseModel):
    """A job to submit. The default `version` is the highest that is not retired."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"workflow": "usage-bill", "input": {"team": "search"}, "metadata": {"order": "4711"}}
        },
    )

    workflow: str = Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)
    version: int | None = Field(None, ge=1, le=2**31 - 1)
    input: Any
    priority: int = Field(0, ge=-1000, le=1000, description="a higher one runs first")
    deadline_s: float | None = Field(None, ge=0, le=LONGEST_DEADLINE_S, description="overrides the workflow's")
    token_budget: int | None = Field(None, ge=0, le=2**53 - 1, description="overrides the workflow's")
    metadata: dict[MetadataKey, MetadataValue] = Field(
        default_factory=dict, max_length=64, description="your own words, by which jobs can be found"
    )

    def as_given(self) -> JsonObject:
        """The fields that were given, by which a repeated request is recognized."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}


class JobBatch(BaseModel):
    """Jobs that are written together, or not at all."""

    model_config = ConfigDict(extra="forbid", strict=True)

    jobs: list[JobRequest] = Field(min_length=1, max_length=MOST_JOBS)
