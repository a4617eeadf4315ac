"""The base of all results: pydantic models that services return, and that the API and the commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, SkipValidation

if TYPE_CHECKING:
    Text: TypeAlias = str
else:
    Text = Annotated[str, SkipValidation]
"""A string of a model, a tool or a document: it may contain unpaired surrogates, which pydantic's ``str`` rejects."""


class ResponseModel(BaseModel):
    """Fields may be added; none is renamed or removed. Fields that a newer server adds are ignored.

    A field that was never set is left out of the JSON (see ``jsontext``).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True, populate_by_name=True)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return self.model_dump(mode="json", by_alias=True)
