"""Whatever fits the OpenAPI page, and much that does not: no 5xx, every error a clear JSON body."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from tests.serve.running_service import Client, in_process
from unbounded.serve.keys import Keys

# Measured: 18 operations in two modes take 1.2 s of processor time an example.
EXAMPLES = 6

PER_BYTE, ALWAYS = 256, 1_000_000
"""Bytes of an answer: for each byte of its request, and in any case. A page promises 32 MB for the
second; here nobody asks for so much."""

CHECKED = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Iterator[Client]:
    root: Path = tmp_path_factory.mktemp("schema")
    token = Keys(root).add("tester", [], "write")[1]
    with in_process(root, model_folder, "--max-memories", "5000", "--quiet") as process:
        client = Client(process.url, token)
        client.make("notes", "The zorble ate the grass.", "diary")
        # Words as long as somebody hostile likes, of characters that take four bytes each.
        long = " ".join("\U00010330" * 2_000 + str(n) for n in range(20))
        client.post("/v1/memories/notes/read", text=f"{long}\n" * 2, document="long")
        yield client


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_nothing_that_is_asked_breaks_the_service(mode: GenerationMode, locked: Client) -> None:
    page = schemathesis.openapi.from_dict(locked.get("/v1/openapi.json"))
    checks = [check for check in CHECKS.get_all() if check.__name__ in CHECKED]
    assert len(checks) == len(CHECKED)
    asked: dict[str, set[int]] = {}
    operations = 0
    for found in page.get_all_operations():
        assert isinstance(found, Ok)
        operations += 1
        operation = found.ok()
        cases = operation.as_strategy(generation_mode=mode)

        @given(case=cases)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def one(case: Any) -> None:
            if mode is GenerationMode.POSITIVE:
                _aim(case)
            _shorten(case)
            # As patient as everybody else here: its own ten seconds are short on a busy machine.
            answer = case.call(
                base_url=locked.url,
                headers={"Authorization": locked.http.headers["authorization"]},
                timeout=60,
            )
            asked.setdefault(case.operation.label, set()).add(answer.status_code)
            sent = len(answer.request.url) + len(answer.request.body or b"")
            assert len(answer.content) <= PER_BYTE * sent + ALWAYS
            writes = case.path.endswith(("/memories", "/read", "/forget"))
            if writes and case.method == "POST" and answer.status_code < 300:
                _check_all_gets(locked)
            case.validate_response(answer, checks=checks)
            if answer.status_code >= 400:
                error = answer.json()["error"]
                assert error["message"]
                assert error["code"]

        try:
            one()
        except Unsatisfiable:
            # Without parameters and body there is nothing to get wrong.
            assert mode is GenerationMode.NEGATIVE
    if mode is GenerationMode.POSITIVE:
        assert len(asked) == operations > 15
        assert all(
            statuses & {200, 201}
            for name, statuses in asked.items()
            # What is deleted is none; this model has no chat template.
            if "DELETE" not in name and "chat" not in name
        )
    else:
        # An unknown header or query is no mistake, so that some are answered.
        assert all(max(statuses) in range(400, 500) for statuses in asked.values())


def _check_all_gets(client: Client) -> None:
    """After whatever was accepted, all that can be looked at can be looked at."""
    for path in ("", "/notes", "/notes/documents"):
        client.get(f"/v1/memories{path}")
    for path in ("/v1/models", "/v1/models/notes", "/tokenizer_info"):
        client.get(path)
    client.post("/v1/memories/notes/predict", text="The", n=1, sources=1)


def _aim(case: Any) -> None:
    """At a memory that is there, or nothing would get past its name; but not to delete it."""
    if "name" in (case.path_parameters or {}):
        case.path_parameters["name"] = "gone" if case.method == "DELETE" else "notes"
    body = case.body if isinstance(case.body, dict) else {}
    if "model" in body:
        body["model"] = "notes"
    if body.get("document") and case.path.endswith("forget"):
        body["document"] = "diary"


def _shorten(case: Any) -> None:
    """Long answers are no other than short ones."""
    name = {"complete": "words", "completions": "max_tokens"}.get(case.path.split("/")[-1])
    if name is not None and isinstance(case.body, dict):
        given = case.body.get(name, 256)
        if isinstance(given, int | float) and 3 < given <= 256:
            case.body[name] = 3
