"""Settings that span folders, and how they become objects."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unbounded.corpus import Vocabulary
from unbounded.datastore import IVFPQ, Auto, Datastore, Flat, Local
from unbounded.datastore.threads import set_search_threads
from unbounded.errors import SettingError
from unbounded.experts import (
    Adapted,
    Cache,
    Dynamic,
    Expert,
    Kernel,
    NGram,
    Offline,
    Spelling,
    Static,
    Uniform,
    Unigram,
)
from unbounded.experts.cache import PAPER_K, Neighborhood
from unbounded.lm import AdaptedHead, LanguageModel, Pretrained, SharedHead
from unbounded.lm.network_threads import set_network_threads
from unbounded.lm.oov import OOV_READINGS, Spelled
from unbounded.mixture import Gated
from unbounded.model import OnlineModel

INDEXES: dict[str, type[Auto] | type[Flat] | type[IVFPQ]] = {
    "auto": Auto,
    "flat": Flat,
    "ivfpq": IVFPQ,
}


CACHE_SHORT, CACHE_LONG = 128, 1024
"""Words that the two small caches of `full` look back: this sentence or two, and this page or two.

With them in the place of the paper's 10,000, `full` is better and cheaper (docs/log.md).
"""


@dataclass(frozen=True)
class MemoryConfig:
    """How the caches remember; the paper's numbers where nothing better was measured."""

    index: str = "auto"
    """ "We use the IVFPQ implementation": `ivfpq` is the paper's, `auto` ours, `flat` exact."""

    k: int | None = None
    """None is the paper's 1,024, and more from half a million entries on: there it pays more than
    to look for the same ones longer (docs/decisions.md, 64)."""

    window: int = 10_000
    """ "the local cache (size 10,000)" """

    kernel: Kernel | None = None
    """None is a family of Gaussians, learned from; the paper's is `Kernel(sharpness=1.0)`."""

    local_kernel: Kernel | None = None
    normalize: bool = True
    """States scaled to length one before they are stored and searched: 0.4 % better on news, 4.5 %
    on wiki (docs/log.md). The paper names it as the case that equals the continuous cache."""

    def __post_init__(self) -> None:
        if self.index not in INDEXES:
            raise SettingError(f"index {self.index!r} is unknown; use {', '.join(INDEXES)}")
        Neighborhood.of(self.k)
        if self.window < 1:
            raise SettingError(f"the window is {self.window}; it must be at least 1")

    def new_index(self, width: int) -> Local:
        """An empty datastore of the kind asked for."""
        return INDEXES[self.index](width)


def build_online(
    model: Pretrained,
    full_size: int | None,
    experts: Iterable[str],
    memory: MemoryConfig,
    oov: str = "unk",
    pairs: Callable[[Vocabulary], Datastore] | None = None,
) -> OnlineModel:
    """An online model with these experts, which has read nothing yet.

    `full_size` is the full vocabulary of the paper's protocol: training and test words together.
    None is the open protocol: nothing of the future is known, and an expert that has nothing to go
    by is even over the network's own words. `oov` are read as `<unk>` as the paper has it, or
    by their `characters`. `pairs` makes the memory of the unbounded cache, if it lies elsewhere.
    """
    width, part, key_width = model.lm.width, model.lm.key_part, model.lm.key_width
    vocabulary = model.vocabulary.copy()
    if model.lm.closed:
        # There are no OOV words, so the full vocabulary is known, whatever the protocol.
        full_size, oov = model.lm.base_size, "unk"
    size = model.lm.base_size if full_size is None else full_size
    is_open = full_size is None
    check_oov(oov)
    lm: LanguageModel = model.lm
    if oov == "characters":
        lm = Spelled(model.recurrent, model.speller, vocabulary)
    built: dict[str, Expert] = {}
    names = list(experts)
    shared = SharedHead(model.headed) if "adapted" in names else None
    for name in names:
        match name:
            case "static":
                built[name] = Static(shared or model.lm)
            case "adapted":
                assert shared is not None
                built[name] = Adapted(AdaptedHead(shared))
            case "dynamic":
                from unbounded.lm import DynamicModel

                built[name] = Dynamic(DynamicModel(model.recurrent))
            case "uniform":
                if full_size is None:
                    raise SettingError(
                        "a uniform expert needs the size of the full vocabulary, which the open "
                        "protocol does not know; use spelling"
                    )
                built[name] = Uniform(full_size)
            case "spelling":
                built[name] = Spelling(vocabulary)
            case "unigram":
                built[name] = Unigram(size)
            case "ngram":
                built[name] = NGram(size, open=is_open)
            case "train_ngram":
                built[name] = _primed(model, NGram(size, open=is_open))
            case "cache_128" | "cache_1024" | "local":
                windows = {
                    "cache_128": CACHE_SHORT,
                    "cache_1024": CACHE_LONG,
                    "local": memory.window,
                }
                built[name] = Cache(
                    Flat(key_width, window=windows[name]),
                    size,
                    k=memory.k,
                    kernel=memory.local_kernel,
                    normalize=memory.normalize,
                    part=part,
                )
            case "unbounded":
                built[name] = Cache(
                    memory.new_index(key_width) if pairs is None else pairs(vocabulary),
                    size,
                    k=memory.k,
                    kernel=memory.kernel,
                    normalize=memory.normalize,
                    part=part,
                )
            case "knn" | "tuned":
                store = memory.new_index(key_width)
                built[name] = Offline(store, size, k=memory.k or PAPER_K, part=part)
            case _:
                raise SettingError(f"expert {name!r} is unknown")
    mixture = Gated(len(built), groups=[width])
    return OnlineModel(lm, vocabulary, built, mixture)


def check_oov(oov: str) -> None:
    """Refuse a way of reading OOV words that there is not."""
    if oov not in OOV_READINGS:
        raise SettingError(f"OOV words {oov!r} is unknown; use {' or '.join(OOV_READINGS)}")


def _primed(model: Pretrained, ngram: NGram) -> NGram:
    """The n-gram memory when it has read what the network was trained on."""
    if model.text is None:
        raise SettingError(
            "expert 'primed' needs the training text, which this model does not keep; "
            "train it again, or leave the expert out"
        )
    ngram.score(np.empty((len(model.text), 0), np.float32), model.text)
    return ngram


def set_threads(threads: int) -> None:
    """Let training, the network and searching use so many threads each."""
    set_search_threads(threads)
    set_network_threads(threads)
