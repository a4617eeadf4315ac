"""The audit of arbitrary JSON: it never raises, and its work is limited."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.lint.audit.check import MOST_STEPS, audit
from stepladder.lint.audit.remark import Role
from stepladder.lint.audit.vocabulary import ANNOTATIONS, CORE, EVERYWHERE, KINDS_OF
from stepladder.lint.backends.engines import Backend, Engine, engine_of
from stepladder.lint.values import Values, Work
from stepladder.schemas.codes import CODES
from stepladder.schemas.pointer import pointer

KEYWORDS = st.sampled_from([*KINDS_OF, *EVERYWHERE, *CORE, *ANNOTATIONS, "maxlenght", "a", "b"])
TYPES = st.sampled_from(["string", "integer", "number", "array", "object", "null", "boolean", "text"])
WORDS = st.sampled_from(["#", "#/$defs/a", "#/properties/b", "#x", "http://a/b", "^a|(b$", "[", "\\", "date", "a", "ü"])
PLAIN = st.none() | st.booleans() | st.integers(-3, 3000) | st.floats() | TYPES | WORDS | st.text(max_size=5)
ANY = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYWORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)
SCHEMAS = st.dictionaries(KEYWORDS, ANY, max_size=6)
ENGINES = [found for backend in Backend if isinstance(found := engine_of(backend), Engine)]


@settings(max_examples=100)
@given(SCHEMAS, st.sampled_from(Role), st.sampled_from([None, *ENGINES]))
def test_any_object_is_audited_with_known_codes(schema: Any, role: Role, engine: Engine | None) -> None:
    for remark in audit(schema, role, engine):
        assert remark.severity in CODES[remark.code].severities
        assert pointer(remark.path).count("/") == len(remark.path)


@settings(max_examples=100)
@given(SCHEMAS, st.sampled_from(Role))
def test_remarks_are_deterministic_and_unique(schema: Any, role: Role) -> None:
    remarks = audit(schema, role)
    assert audit(schema, role) == remarks
    assert len({(remark.code, remark.path) for remark in remarks}) == len(remarks)


def test_multiplying_branches_are_followed_to_a_limit() -> None:
    """Sixty levels with two different branches each: 2 to the 60th combinations without a limit."""
    ways: dict[str, Any] = {
        f"d{level}": {
            "anyOf": [{"$ref": f"#/$defs/d{level + 1}", "minLength": level}, {"$ref": f"#/$defs/d{level + 1}"}]
        }
        for level in range(60)
    }
    schema: Any = {"$defs": ways | {"d60": {"type": "string"}}, "$ref": "#/$defs/d0"}
    assert len(list(Values(schema, Work(MOST_STEPS).spend).everywhere())) <= MOST_STEPS
    assert ("no_max_length", "/$defs/d60") in {(r.code, pointer(r.path)) for r in audit(schema, Role.DECODED)}


def test_long_chains_and_wide_unions_end() -> None:
    chain: Any = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)} | {"d3000": {"type": "string"}}
    assert audit({"$defs": chain, "$ref": "#/$defs/d0"}, Role.DECODED)
    shared: Any = {"$defs": {"d": {"allOf": [{"maxLength": n} for n in range(1000)]}}}
    wide = {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/d"} for n in range(3000)}}
    assert audit(shared | wide, Role.DECODED)
    assert audit({"oneOf": [{"enum": [f"{n}-{m}" for m in range(300)]} for n in range(60)]}, Role.DECODED)
    assert audit({f"maxlenght{n}": 1 for n in range(15_000)}, Role.DECODED)
