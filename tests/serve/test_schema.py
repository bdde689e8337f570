"""Whatever fits the OpenAPI page, and much that does not: no 5xx, every error a clear JSON body."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

from tests.serve.living import Client, living
from unbounded.lm import Pretrained
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> Iterator[tuple[str, str]]:
    root: Path = tmp_path_factory.mktemp("schema")
    token = Keys(root).add("tester", [], "write")[1]
    with living(root, model, keys=Keys(root), limits=Limits(memories=5000, open=8)) as url:
        client = Client(url, token)
        client.post("/v1/memories", name="notes")
        client.post("/v1/memories/notes/read", text="The zorble ate the grass.", document="diary")
        yield url, token


@pytest.fixture(scope="module")
def page(locked: tuple[str, str]) -> Any:
    schema = schemathesis.openapi.from_url(f"{locked[0]}/v1/openapi.json")
    # Half of the time a memory that is there, or nothing would get past its name.
    return schema


schema = schemathesis.pytest.from_fixture("page")


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_nothing_that_is_asked_breaks_the_service(case: Any, locked: tuple[str, str]) -> None:
    if case.path_parameters and case.meta.generation.mode.is_positive:
        case.path_parameters["name"] = "notes"
    if case.method == "DELETE":
        case.path_parameters["name"] = "not-there"
    answer = case.call(headers={"Authorization": f"Bearer {locked[1]}"}, timeout=60)
    assert answer.status_code < 500, answer.text
    checks = [check for check in CHECKS.get_all() if check.__name__ in CHECKED]
    assert len(checks) == len(CHECKED)
    case.validate_response(answer, checks=checks)
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert error["message"]
        assert error["code"]


CHECKED = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
}
