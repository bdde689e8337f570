"""`/docs`: each example on it is run as it stands, and nothing on it is from elsewhere."""

import json
import re
import shlex
from html import unescape

from tests.serve.running_service import Client


def test_every_operation_is_there_with_an_example_that_runs(client: Client, address: str) -> None:
    answer = client.ask("GET", "/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert not re.search(r'(?:src|href)="(?!/)', answer.text)
    client.make("notes", "The zorble ate the grass.", "diary")
    commands = [unescape(one) for one in re.findall(r"<pre[^>]*>(.*?)</pre>", answer.text, re.S)]
    document = client.get("/v1/openapi.json")
    assert len(commands) == sum(len(one) for one in document["paths"].values())
    # To delete it comes last.
    for command in sorted(commands, key=lambda one: "DELETE" in one):
        words = iter(shlex.split(command.replace("\\\n", " "))[1:])
        method, body, url = None, None, ""
        for word in words:
            match word:
                case "-X":
                    method = next(words)
                case "-H":
                    assert next(words) == "Content-Type: application/json"
                case "-d":
                    body = json.loads(next(words))
                case _:
                    url = word
        assert url.startswith(address)
        method = method or ("GET" if body is None else "POST")
        status = client.ask(method, url.removeprefix(address), body).status_code
        # The one is there already; the other needs a model with a chat template.
        expected = {"/v1/memories": 409, "/v1/chat/completions": 422}
        wanted = expected.get(url.removeprefix(address), 200) if body else 200
        assert status == wanted, command
