"""The texts of the experiments: found in a folder, shuffled and split as the paper's were."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import final

from unbounded.corpus import Line, Reader, Tokenizer, write_lines
from unbounded.errors import CorpusError, SettingError
from unbounded.files import write_atomically

SEED = 1
"""Of every shuffle; a line is on one side of a split only."""


SOURCES = {
    **{f"news-{year}": f"news/{year}.txt.xz" for year in range(2007, 2012)},
    "commentary": "commentary",
    "web": "web/blogs.txt.xz",
    "wiki": "wiki/articles.txt.xz",
    "books": "books",
}
"""Where a domain's text lies below the corpora's folder."""

IN_ORDER = ("wiki", "books")
"""Domains that the paper did not shuffle."""


def spoken(domain: str) -> str:
    """A domain as people write it: `news-2007` is news 2007."""
    return domain.replace("-", " ")


def domain_order(domain: str) -> tuple[int, str]:
    """Where a domain comes in a table: as in `SOURCES`, others after those by name."""
    return (list(SOURCES).index(domain) if domain in SOURCES else len(SOURCES), domain)


@final
class Corpora:
    """Texts by name, prepared once in a working folder and then read from there.

    A domain is laid down as `train.txt` (at least `train_tokens` words, the sentence ends
    counted), `valid.txt` and `test.txt` (all the rest, or as many words as are asked for).
    Shuffled domains are shuffled line by line with `SEED` first; the others keep their order, so
    their documents stay whole.
    """

    def __init__(
        self,
        folder: Path,
        work: Path,
        *,
        train_tokens: int,
        valid_tokens: int = 100_000,
        test_tokens: int | None = None,
    ) -> None:
        self._folder = folder
        self._work = work
        self._sizes = {"train": train_tokens, "valid": valid_tokens, "test": test_tokens}

    def text(self, domain: str, part: str) -> Path:
        """The file of one part of a domain: `train`, `valid` or `test`."""
        if domain not in SOURCES:
            raise SettingError(f"domain {domain!r} is unknown; use one of {', '.join(SOURCES)}")
        place = self._work / "texts" / f"{domain}-{self._sizes['train']}"
        if not (place / "test.txt").exists():
            self._prepare(domain, place)
        return place / f"{part}.txt"

    def _prepare(self, domain: str, place: Path) -> None:
        path = self._folder / SOURCES[domain]
        if not path.exists():
            raise CorpusError(
                f"the corpora have no {SOURCES[domain]} for the domain {domain!r}; put it in "
                f"{self._folder}, or give another --corpora"
            )
        lines: Iterable[Line] = Reader([path])
        if domain not in IN_ORDER:
            lines = list(lines)
            random.Random(SEED).shuffle(lines)
        rest = iter(lines)
        place.mkdir(parents=True, exist_ok=True)
        for part in ("train", "valid", "test"):
            wanted = self._sizes[part]
            parted = domain in IN_ORDER
            with write_atomically(place / f"{part}.txt") as aside:
                found = write_lines(rest, aside, Tokenizer(), wanted, documents=parted)
            if found < (wanted or 1) and (part != "test" or not found):
                raise CorpusError(
                    f"{path} has too few words: {found:,} for the {part} part of {domain!r}, where "
                    f"{wanted or 1:,} are needed; use a smaller --scale or more text"
                )


def first_words(path: Path, words: int) -> list[Line]:
    """Lines until they hold so many words, sentence ends counted."""
    splitter, lines, count = Tokenizer(), [], 0
    for line in Reader([path]):
        lines.append(line)
        count += len(splitter.words(line.text)) + 1
        if count >= words:
            break
    return lines
