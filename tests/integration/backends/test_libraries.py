"""The tables of grammar backends against the programs themselves, byte by byte.

``llguidance`` reads llama.cpp's grammars too. ``xgrammar`` needs torch, some gigabytes, so its test runs only where it
is installed, for a change of its table. What vLLM refuses before xgrammar sees it is not tested.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from stepladder.embedded import llama
from stepladder.embedded.model import ensure_model
from stepladder.lint.backends.engines import Backend, Engine, Verdict, engine_of
from support.forms import CASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Accepts = Callable[[str], bool]
    Compile = Callable[[Any], Accepts | None]

REFUSED_BY_VLLM = (
    *("multipleOf of", "uniqueItems", "contains", "format", "maxLength beside", "minLength beside"),
    *("patternProperties beside", "propertyNames beside properties", "allOf with several"),
)


def acceptor(grammar: str) -> Accepts | None:
    """None if llguidance refuses the grammar."""
    llguidance = import_module("llguidance")
    tokens = llguidance.LLTokenizer("byte")
    if llguidance.LLMatcher.validate_grammar(grammar, tokens):
        return None

    def accepts(text: str) -> bool:
        matcher = llguidance.LLMatcher(tokens, grammar)
        content = list(text.encode())
        return bool(matcher.try_consume_tokens(content) == len(content) and matcher.is_accepting())

    return accepts


def llguidance_compile(schema: Any) -> Accepts | None:
    matcher = import_module("llguidance").LLMatcher
    return acceptor(matcher.grammar_from_json_schema(json.dumps(schema), defaults={"whitespace_flexible": True}))


def xgrammar_compile(schema: Any) -> Accepts | None:
    testing = import_module("xgrammar.testing")
    try:
        grammar = import_module("xgrammar").Grammar.from_json_schema(json.dumps(schema))
    except RuntimeError:
        return None
    return lambda text: bool(testing._is_grammar_accept_string(grammar, text))


def differences(
    backend: Backend, compile_: Compile, forms: Iterable[str] = CASES
) -> dict[str, tuple[Verdict, Verdict]]:
    """Every form whose verdict in the table differs from the measured one: the table's, and the measured."""
    engine = engine_of(backend)
    assert isinstance(engine, Engine)
    pairs = {form: (engine.verdict(form), measured(compile_(CASES[form].schema), form)) for form in forms}
    return {form: pair for form, pair in pairs.items() if pair[0] is not pair[1]}


def measured(accepts: Accepts | None, form: str) -> Verdict:
    case = CASES[form]
    if accepts is None:
        return Verdict.REFUSED
    if any(accepts(json.dumps(value)) for value in case.breaks):
        return Verdict.IGNORED
    return Verdict.ENFORCED if all(accepts(json.dumps(value)) for value in case.fits) else Verdict.NARROWED


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("llama") / "llama.log"
    with llama.running(ensure_model(), log) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def llamacpp_compile(client: httpx.Client) -> Compile:
    """The grammar is in the verbose answer to a chat completion of one token."""
    llguidance = import_module("llguidance")
    lark = import_module("llguidance.gbnf_to_lark")

    def compile_(schema: Any) -> Accepts | None:
        form = {"type": "json_schema", "json_schema": {"name": "case", "schema": schema}}
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "verbose": True}
        answer = client.post("chat/completions", json=body | {"response_format": form})
        if answer.status_code == httpx.codes.BAD_REQUEST:
            return None
        rules = answer.raise_for_status().json()["__verbose"]["generation_settings"]["grammar"].splitlines()
        rules = ["root ::= response-format" if rule.startswith("root ::=") else rule for rule in rules]
        grammar = llguidance.LLMatcher.grammar_from_lark(lark.gbnf_to_lark("\n".join(rules)))
        return acceptor(grammar) or (lambda _: True)  # llama.cpp itself takes a grammar with missing rules

    return compile_


def test_guidance_does_what_its_table_says() -> None:
    assert differences(Backend.GUIDANCE, llguidance_compile) == {}


if find_spec("xgrammar") is not None:

    def test_xgrammar_does_what_its_table_says() -> None:
        forms = [form for form in CASES if not form.startswith(REFUSED_BY_VLLM)]
        assert differences(Backend.XGRAMMAR, xgrammar_compile, forms) == {}


@pytest.mark.long
def test_llama_cpp_does_what_its_table_says(server: httpx.Client) -> None:
    assert differences(Backend.LLAMACPP, llamacpp_compile(server)) == {}
