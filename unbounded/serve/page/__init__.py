"""The page: plain HTML, CSS and JavaScript, from this package and from nowhere else."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

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


@router.get("/")
async def index() -> Response:
    """The page."""
    return Response(FILES["index.html"], media_type=KINDS["html"])


def _add(name: str) -> None:
    @router.get(f"/page/{name}")
    async def part() -> Response:
        return Response(FILES[name], media_type=KINDS[name.rpartition(".")[2]])


for _name in FILES:
    _add(_name)
