"""Schemas compiled for tests."""

from __future__ import annotations

from typing import Any

from stepladder.validation.schema import Schema, compile_schema


def compiled(schema: Any) -> Schema:
    found = compile_schema(schema)
    assert isinstance(found, Schema), found
    return found
