"""The page, and `/docs`: plain HTML, CSS and JavaScript, from this package and from nowhere else.

`/docs` has every operation with an example to copy, made from the OpenAPI document.
"""

import json
from collections.abc import Iterator
from functools import partial
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Read once: what a request asks for is looked up among these, and never on disk.
FILES = {
    file.name: file.read_bytes()
    for file in files("unbounded.serve.page").iterdir()
    if file.name.rpartition(".")[2] in KINDS
}


async def _file(name: str) -> Response:
    return Response(FILES[name], media_type=KINDS[name.rpartition(".")[2]])


for _path, _name in {"/": "index.html", **{f"/page/{name}": name for name in FILES}}.items():
    router.add_api_route(_path, partial(_file, _name))

PAGE = Template(files("unbounded.serve.page").joinpath("docs.template").read_text("utf-8"))


@router.get("/docs", response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """The API for people."""
    base = str(request.base_url).rstrip("/")
    operations = "\n".join(_sections(request.app.openapi(), base))
    return HTMLResponse(PAGE.substitute(base=escape(base), operations=operations))


def _sections(document: dict[str, Any], base: str) -> Iterator[str]:
    heading = None
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if heading != (heading := operation["tags"][0]):
                yield f"<h2>{escape(heading)}</h2>"
            said = operation["description"]
            called = f"{method.upper()} {path}"
            command = escape(_command(document, base, method.upper(), path, operation))
            yield (
                f"<section><h3><code>{escape(called)}</code></h3>\n<p>{escape(said)}</p>\n"
                f'<pre aria-label="Example of {escape(called)}">{command}</pre></section>'
            )


def _command(
    document: dict[str, Any], base: str, method: str, path: str, operation: dict[str, Any]
) -> str:
    """How `curl` asks for it."""
    how = "" if method in ("GET", "POST") else f" -X {method}"
    command = f"curl{how} {base}{path.replace('{name}', 'notes')}"
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = json.dumps(_example(document, schema), ensure_ascii=False)
        command += f" \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    return command


def _example(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    """A value that fits, as far as the document gives examples; None where it gives none."""
    if "$ref" in schema:
        return _example(document, document["components"]["schemas"][schema["$ref"].split("/")[-1]])
    if "examples" in schema:
        return schema["examples"][0]
    for one in schema.get("anyOf", ()):
        if (found := _example(document, one)) is not None:
            return found
    if schema.get("type") == "array":
        found = _example(document, schema["items"])
        return None if found is None else [found]
    if schema.get("type") != "object" or "properties" not in schema:
        return None
    members = ((name, _example(document, one)) for name, one in schema["properties"].items())
    return {name: value for name, value in members if value is not None} or None
