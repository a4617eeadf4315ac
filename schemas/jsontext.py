"""Exact JSON text: values come out as they were stored, including big integers, 36.0 and lone surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel

_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: object, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Models, dataclasses, times and ids among the values are written as in the HTTP API.

    A lone surrogate, which UTF-8 cannot encode, is escaped. Raises ``ValueError`` for NaN and infinity.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, default=_plain, indent=indent)
    if _SURROGATE.search(text):
        text = json.dumps(value, allow_nan=False, default=_plain, indent=indent)
    return text


def _plain(value: Any) -> Any:
    """One level of a value in what JSON knows. Fields of a model that were never set are left out."""
    match value:
        case BaseModel():
            fields_set = value.model_fields_set
            known = type(value).model_fields.items()
            found = {name: getattr(value, name) for name, field in known if name in fields_set and not field.exclude}
            return found | (value.model_extra or {})
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case UUID():
            return str(value)
        case Mapping():
            return dict(value)
        case _ if is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        case _:
            return list(value)
