"""The embedded engine, for real."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from stepladder.embedded import llama
from stepladder.embedded.model import ensure_model
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long

OWNER = """
import sys
from pathlib import Path
from stepladder.embedded import llama
with llama.running(Path(sys.argv[1]), Path(sys.argv[2])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""
BILL = {
    "type": "object",
    "properties": {"action": {"enum": ["bill"]}, "hours": {"type": "integer", "minimum": 0, "maximum": 1000}},
    "required": ["action", "hours"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> Path:
    return ensure_model()


@pytest.fixture(scope="module")
def engine(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("llama") / "llama.log"
    with llama.running(model, log) as url, httpx.Client(base_url=url, timeout=120) as client:
        yield client


def ask(engine: httpx.Client, **body: Any) -> dict[str, Any]:
    question = {"model": llama.ALIAS, "messages": [{"role": "user", "content": "Bill the team for 12 hours."}]}
    answer: dict[str, Any] = engine.post("chat/completions", json=question | body).raise_for_status().json()
    return answer


def constrained(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/models").is_success
    except httpx.TransportError:
        return False


def test_it_names_the_model_and_divides_the_context(engine: httpx.Client) -> None:
    [served] = engine.get("models").json()["data"]
    assert served["id"] == llama.ALIAS
    assert served["meta"]["n_ctx"] == llama.CONTEXT // llama.SLOTS
    assert served["meta"]["n_ctx_train"] == llama.CONTEXT
    assert engine.base_url.host == "127.0.0.1"


def test_a_schema_binds_the_answer_even_at_a_high_temperature(engine: httpx.Client) -> None:
    for seed in range(3):
        answer = ask(engine, response_format=constrained(BILL), temperature=1.5, seed=seed, max_completion_tokens=64)
        content = json.loads(answer["choices"][0]["message"]["content"])
        assert content["action"] == "bill"
        assert content["hours"] in range(1001)


def test_a_seed_gives_the_same_answer_alone_and_among_others(engine: httpx.Client) -> None:
    def content(seed: int) -> str:
        answer = ask(engine, temperature=1, seed=seed, max_completion_tokens=40)
        return str(answer["choices"][0]["message"]["content"])

    alone = [content(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as together:
        assert list(together.map(content, range(4))) == alone
    assert len(set(alone)) > 1


def test_an_answer_cut_off_by_its_budget_says_length(engine: httpx.Client) -> None:
    answer = ask(engine, response_format=constrained(BILL), max_completion_tokens=4)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 4


def test_a_stream_ends_with_its_usage(engine: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 4, "stream": True}
    with engine.stream("POST", "chat/completions", json=body | {"stream_options": {"include_usage": True}}) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert json.loads(lines[-2].removeprefix("data: "))["usage"]["completion_tokens"] == 4


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_owner_ends_the_engine(model: Path, tmp_path: Path, signum: signal.Signals) -> None:
    command = [sys.executable, "-c", OWNER, str(model), str(tmp_path / "llama.log")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        assert answers(url)
        owner.send_signal(signum)
        owner.wait(30)
        wait_until(lambda: not answers(url), 30, what="the engine is gone")


def test_an_invalid_model_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.gguf").write_bytes(b"GGUF and then nothing")
    with (
        pytest.raises(UnreachableError, match=r"no\.gguf"),
        llama.running(tmp_path / "no.gguf", tmp_path / "llama.log"),
    ):
        pass
