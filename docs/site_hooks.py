"""What the site has beside the pages in docs/: pages of the root, and one a module.

The pages are written to be read in the repository too, so their links are those of files; here
they are led to where the files are in the site.
"""

import ast
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "experiments/README.md": "experiments.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Where files outside of docs/ are in the site."""
PICTURES = "experiments/results/figures"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def modules() -> list[str]:
    """Every module of the package that has a name for others."""
    found = []
    for path in sorted((ROOT / "unbounded").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return found


def on_config(config: Any) -> Any:
    """The pages of modules stand in the contents, by folder."""
    folders: dict[str, list[Any]] = {}
    for name in modules():
        parts = name.split(".")
        title = name if len(parts) < 3 else parts[-1]
        folders.setdefault(".".join(parts[:2]), []).append({title: f"api/{name}.md"})
    nav = next(part["Python API"] for part in config.nav if "Python API" in part)
    for folder, pages in folders.items():
        nav.append(pages[0] if len(pages) == 1 else {folder: pages})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Pages that are not in docs/, with the pictures that they show."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=led(text, source)))
    for name in modules():
        files.append(File.generated(config, f"api/{name}.md", content=module_page(name)))
    for path in sorted((ROOT / PICTURES).glob("*.svg")):
        files.append(File.generated(config, f"{PICTURES}/{path.name}", abs_src_path=str(path)))
    return files


def module_page(name: str) -> str:
    """A module is shown whole; a package, by the first sentences of its modules."""
    below = [each for each in modules() if each.rpartition(".")[0] == name]
    if not below:
        return f"# `{name}`\n\n::: {name}\n"
    page = f"# `{name}`\n\n::: {name}\n    options: {{members: false}}\n\n| module | |\n|---|---|\n"
    for each in below:
        page += f"| [`{each}`]({each}.md) | {promise(each)} |\n"
    return page


def promise(name: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / Path(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links of the pages in docs/."""
    source = page.file.src_uri
    if source in PAGES.values() or source.startswith("api/"):
        return markdown
    return led(markdown, f"docs/{source}")


def led(text: str, source: str) -> str:
    """The text of a file of the repository with links to where things are in the site."""
    here = PurePosixPath(source).parent
    there = PurePosixPath(_target(source) or "index.md").parent

    def lead(match: re.Match[str]) -> str:
        picture, label, link, anchor = match.groups()
        if not link or "://" in link:
            return match[0]
        target = _target(os.path.normpath(here / link))
        if target is None:
            return label
        return f"{picture}[{label}]({os.path.relpath(target, there)}{anchor or ''})"

    return LINK.sub(lead, text)


def _target(file: str) -> str | None:
    """Where a file of the repository is in the site, if it is."""
    if file in PAGES:
        return PAGES[file]
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    return file if file.startswith(PICTURES) else None
