"""The table of what grammar backends enforce: complete, by version, and each form recognised in a schema."""

from __future__ import annotations

from typing import Any

import pytest

from stepladder.lint.audit.check import audit
from stepladder.lint.audit.kinds import KindReader
from stepladder.lint.audit.remark import Role
from stepladder.lint.backends.engines import (
    FORMS,
    Backend,
    Engine,
    UnknownVersion,
    Verdict,
    enforced_nowhere,
    engine_of,
    remedy_for,
)
from stepladder.lint.backends.forms import forms_of
from stepladder.schemas.finding import Severity
from stepladder.schemas.pointer import pointer
from stepladder.validation.schema import Schema, compile_schema
from stepladder.validation.subschemas import Subschemas
from support.forms import CASES


def forms(schema: Any) -> set[str]:
    subschemas = Subschemas(schema)
    return {found.form for found in forms_of(subschemas, KindReader(subschemas))}


def engine(backend: Backend, version: str | None = None) -> Engine:
    found = engine_of(backend, version)
    assert isinstance(found, Engine), found
    return found


def said(schema: Any, backend: Backend, version: str | None = None) -> set[tuple[str, str, Severity]]:
    remarks = audit(schema, Role.DECODED, engine(backend, version))
    return {(r.code, pointer(r.path), r.severity) for r in remarks if r.code.startswith(("engine", "not_enforced"))}


def test_every_form_has_a_case() -> None:
    assert set(CASES) == set(FORMS)


@pytest.mark.parametrize("form", CASES)
def test_a_form_is_recognised(form: str) -> None:
    found = forms(CASES[form].schema)
    assert ("format idn-email" if form == "format" else form) in found
    assert {one for one in found if one not in FORMS and not one.startswith("format ")} == set()


@pytest.mark.parametrize("form", CASES)
def test_the_cases_of_forms_agree_with_the_validator(form: str) -> None:
    case = CASES[form]
    schema = compile_schema(case.schema)
    assert isinstance(schema, Schema), schema
    assert [value for value in case.fits if schema.violations(value)] == []
    assert [value for value in case.breaks if not schema.violations(value)] == []


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("type", "const", "additionalProperties")])
def test_every_form_that_is_not_enforced_has_a_remedy(form: str) -> None:
    if any(engine(backend).verdict(form) is not Verdict.ENFORCED for backend in Backend):
        assert remedy_for(form) != "check it by a rule" or form in ("minLength", "maxLength"), form


def test_forms_that_no_engine_enforces() -> None:
    nowhere = {form for form in FORMS if enforced_nowhere(form) and "without a type" not in form}
    assert nowhere == {
        "pattern with a look-around",
        "pattern with a back-reference",
        "pattern with a word boundary",
        "format",
        "uniqueItems",
        "contains",
        "propertyNames beside properties",
        "dependentRequired",
        "dependentSchemas",
        "not",
        "if",
        "oneOf with branches that overlap",
        "$dynamicRef",
    }


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("0.27.1", Verdict.REFUSED),
        ("v0.29.3", Verdict.REFUSED),
        ("0.30", Verdict.ENFORCED),
        ("0.32.0+cpu", Verdict.ENFORCED),
        ("0.33.0rc1", Verdict.ENFORCED),
        ("1.2.3", Verdict.ENFORCED),
    ],
)
def test_a_verdict_depends_on_the_version(version: str, verdict: Verdict) -> None:
    assert engine(Backend.XGRAMMAR, version).verdict("patternProperties") is verdict


@pytest.mark.parametrize(
    ("backend", "version", "remedy"),
    [(Backend.GUIDANCE, word, "0.27.1 is the oldest known version") for word in ("0.27.0", "0.9", "0.0")]
    + [(Backend.XGRAMMAR, w, "write it as") for w in ("", "latest", "0", "b123", "0.32.0.1.2", "٣.٢", "9" * 9999)]
    + [(Backend.LLAMACPP, word, "write it as") for word in ("", "0.32.0", "b", "bb1", "9" * 9999)],
)
def test_an_old_or_malformed_version_has_a_remedy(backend: Backend, version: str, remedy: str) -> None:
    found = engine_of(backend, version)
    assert isinstance(found, UnknownVersion)
    assert version in found.reason
    assert found.known.startswith(remedy)


def test_a_build_of_llama_cpp_has_three_notations() -> None:
    assert {engine(Backend.LLAMACPP, word) for word in ("b11549", "11549", "2026.10.11549")} == {
        engine(Backend.LLAMACPP)
    }
    assert not engine(Backend.LLAMACPP, "b11550").measured


def test_newer_versions_count_as_not_measured() -> None:
    measured = {word: engine(Backend.XGRAMMAR, word).measured for word in ("0.27.1", "0.31.4", "0.33.7", "0.34", "1.0")}
    assert measured == {"0.27.1": True, "0.31.4": True, "0.33.7": True, "0.34": False, "1.0": False}


def test_findings_on_one_engine() -> None:
    price: Any = {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 5}
    assert said(price, Backend.XGRAMMAR) == {("engine_refuses", "/multipleOf", Severity.ERROR)}
    assert said(price, Backend.GUIDANCE) == set()
    assert said(price, Backend.LLAMACPP) == {("engine_ignores", "/multipleOf", Severity.WARNING)}
    mail: Any = {"type": "string", "pattern": "^[a-z]+@[a-z]+$", "maxLength": 30}
    assert said(mail, Backend.XGRAMMAR, "0.28.0") == {("engine_ignores", "/maxLength", Severity.WARNING)}
    assert said(mail, Backend.XGRAMMAR, "0.29.0") == {("engine_refuses", "/maxLength", Severity.ERROR)}
    assert said({"type": "array", "maxItems": 3}, Backend.XGRAMMAR) == {("engine_narrows", "/type", Severity.WARNING)}


def test_xgrammar_ignores_a_type_in_the_schema_around() -> None:
    schema = {"type": "string", "allOf": [{"maxLength": 9}]}
    assert ("engine_ignores", "/allOf/0/maxLength", Severity.WARNING) in said(schema, Backend.XGRAMMAR)
    assert said(schema, Backend.GUIDANCE) == set()


def test_a_finding_on_every_engine_is_not_repeated_for_one() -> None:
    schema = {"type": "array", "items": {"enum": [1]}, "maxItems": 3, "uniqueItems": True}
    assert said(schema, Backend.XGRAMMAR) == {("not_enforced", "/uniqueItems", Severity.ERROR)}


def test_a_turn_without_a_decoder_has_no_findings_on_an_engine() -> None:
    schema: Any = {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 5}
    assert audit(schema, Role.PROMPTED, engine(Backend.XGRAMMAR)) == ()
