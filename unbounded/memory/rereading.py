"""A text that is read once more: how much of it is there already, and what is left to read."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import final

from unbounded.corpus import Sentence
from unbounded.memory.backend import Placed, unheard
from unbounded.memory.forgetting import Choice
from unbounded.memory.local import LocalBackend


def placed(sentences: Iterable[Sentence]) -> Iterator[Placed]:
    """Each word of sentences, with where it stands."""
    return chain.from_iterable(
        ((one.document, one.line, word) for word in one.words) for one in sentences
    )


def known_words(had: Iterable[Placed], sentences: Iterable[Sentence]) -> int | None:
    """How many words there are already, if a text begins with them; None if it does not.

    The text is gone through to its end. One without words says nothing of what was there.

    >>> text = [Sentence(("it", "rains", "</s>"), "a", 1), Sentence(("why", "</s>"), "a", 2)]
    >>> known_words([("a", 1, "it"), ("a", 1, "rains")], text), known_words([("a", 2, "it")], text)
    (2, None)
    """
    count, same, fresh = 0, True, placed(sentences)
    if (first := next(fresh, None)) is None:
        return 0
    fresh = chain([first], fresh)
    for word in had:
        same = same and next(fresh, None) == word
        count += 1
    for _ in fresh:
        pass
    return count if same else None


def unread(sentences: Iterable[Sentence], known: int) -> Iterator[Sentence]:
    """What follows so many words.

    >>> [one.words for one in unread([Sentence(("it", "rains", "</s>"), "a", 1)], 1)]
    [('rains', '</s>')]
    """
    for one in sentences:
        if known < len(one.words):
            yield one.after(known)
        known = max(known - len(one.words), 0)


@final
class FollowedAgain:
    """A pipe with the name of a document: what comes is compared with what was read under it.

    As long as it is the same it is passed over, and what is more is read. Where it is something
    else, or ends before, all that was read under the name is forgotten, and the pipe is read from
    its beginning; nothing of it had to be held for that.
    """

    def __init__(self, backend: LocalBackend, name: str) -> None:
        self._backend, self._name = backend, name
        self._had: Sequence[Placed] | None = list(backend.words_of(name))
        self.known = 0

    def new(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """What of the next sentences is to be read; where all has changed, with those before."""
        for one in sentences:
            if self._had is None:
                yield one
                continue
            mine = list(placed([one]))
            had = self._had[self.known : self.known + len(mine)]
            if had == mine[: len(had)]:
                self.known += len(had)
                if len(had) < len(mine):
                    self._had = None
                    yield one.after(len(had))
            else:
                yield from self._forgotten()
                yield one

    def rest(self) -> Iterator[Sentence]:
        """The pipe has ended: if before what was read under its name, what it had."""
        if self._had is not None and 0 < self.known < len(self._had):
            yield from self._forgotten()

    def _forgotten(self) -> Iterator[Sentence]:
        assert self._had is not None
        again, self._had, self.known = self._had[: self.known], None, 0
        self._backend.forget(Choice(documents=(self._name,)), dry_run=False, show=unheard)
        for document, line, word in again:
            yield Sentence((word,), document, line)
