"""Which experts, mixture and OOV reading a name stands for; the only such table.

`evaluate`, `read`, `serve`, shards, the harness and Python all build from it: what `evaluate`
prints as its best row is what a memory is made of.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from unbounded.corpus import Vocabulary
from unbounded.datastore import IVFPQ, Auto, Datastore, Flat, Local
from unbounded.datastore.auto import CANDIDATES
from unbounded.datastore.threads import set_search_threads
from unbounded.errors import SettingError, check_settings
from unbounded.experts import (
    Adapted,
    Cache,
    Dynamic,
    DynamicHead,
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
from unbounded.experts.ngram import counted_apart
from unbounded.experts.offline import SHARE
from unbounded.experts.spelling import EDITION
from unbounded.lm import (
    AdaptedHead,
    HeadedModel,
    LanguageModel,
    Pretrained,
    RecurrentModel,
    SharedHead,
)
from unbounded.lm.devices import set_network_threads
from unbounded.lm.oov import OOV_READINGS, OpenVocabularyModel
from unbounded.mixture import Fixed, Gated, Mixture, Online
from unbounded.model import OnlineModel
from unbounded.states import derived

PRESETS: dict[str, tuple[str, ...]] = {
    "static": ("static", "uniform"),
    "unigram": ("static", "uniform", "unigram"),
    "local": ("static", "uniform", "local"),
    "unbounded": ("static", "uniform", "unbounded"),
    "full": (
        *("static", "uniform", "dynamic_head", "unigram", "ngrams"),
        *("cache_128", "cache_1024", "unbounded"),
    ),
    "adapted": ("static", "uniform", "adapted"),
    "dynamic_head": ("static", "uniform", "dynamic_head"),
    "dynamic": ("dynamic", "uniform"),
    "knnlm": ("static", "knn"),
    "knnlm-tuned": ("static", "tuned"),
}
"""The paper's four and all experts together; "we always interpolate … with the uniform".

`dynamic_head` is the output layer learning alone, or an adapter beneath it where it is too large
to copy; `adapted` is the layer along a few directions, `dynamic` a baseline: all of it learning.
`knnlm` is another, with a memory filled beforehand: as published, or tuned on a text for that.
"""


PROTOCOLS = ("paper", "open")
"""`paper`: OOV words come from a uniform over training and test words. `open`: nothing of the
future is known, and OOV words are spelled."""

OFFLINE = {"knnlm": "knn", "knnlm-tuned": "tuned"}
"""Presets whose datastore is filled before the first word that is scored, and whose that is."""

GATED = ("full",)
"""Presets whose weights depend on the state before each word; others learn one set of weights."""

INDEXES: dict[str, type[Auto] | type[Flat] | type[IVFPQ]] = {
    "auto": Auto,
    "flat": Flat,
    "ivfpq": IVFPQ,
}

WINDOWS = {"cache_128": 128, "cache_1024": 1024}
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

    candidates: int = CANDIDATES
    """Entries that `auto` looks at for each neighbor asked for."""

    def __post_init__(self) -> None:
        check_settings(self, least_one="candidates")
        if self.index not in INDEXES:
            raise SettingError(f"index {self.index!r} is unknown; use {', '.join(INDEXES)}")
        Neighborhood.of(self.k)
        if self.window < 1:
            raise SettingError(f"the window is {self.window}; it must be at least 1")


def experts_for(
    preset: str, protocol: str = "paper", *, text: bool = True, closed: bool = False
) -> tuple[str, ...]:
    """The experts of a preset that can be had, under a protocol, with the training text or without.

    With a `closed` vocabulary there are no OOV words: the network alone is a model. Its output
    layer is too large to copy: what learns is an adapter beneath it, and beside that the layer
    along a few directions.

    >>> experts_for("unigram", "open")
    ('static', 'spelling', 'unigram')
    """
    if closed and preset == "static":
        return ("static",)
    swapped = {}
    if protocol == "open" and not closed:
        swapped["uniform"] = "spelling"
    if not text:
        swapped["ngrams"] = "ngram"
    names = tuple(swapped.get(name, name) for name in PRESETS[preset])
    return (*names, "adapted") if closed and preset == "full" else names


def available(model: Pretrained, preset: str, protocol: str = "open") -> tuple[str, ...]:
    """The experts of a preset that this model can have."""
    names = experts_for(preset, protocol, text=model.text is not None, closed=model.lm.closed)
    needed = dict.fromkeys(("adapted", "dynamic_head"), HeadedModel)
    return tuple(name for name in names if isinstance(model.lm, needed.get(name, LanguageModel)))


@dataclass(frozen=True)
class Recipe:
    """What a memory is made of; it is written down with the memory, and stays."""

    experts: tuple[str, ...]
    mixture: str = "gated"
    """`gated`, by the state before each word, or `online`, one set of weights."""
    oov: str = "characters"
    spelling: int = EDITION
    """The edition of the spelling model."""

    def __post_init__(self) -> None:
        if "unbounded" not in self.experts:
            raise SettingError(
                f"experts {', '.join(self.experts)}; a memory needs the expert 'unbounded' to "
                "remember by: add it, or use build_online"
            )

    def build(
        self,
        model: Pretrained,
        full_size: int | None,
        config: MemoryConfig,
        datastore: Callable[[], Datastore] | None = None,
    ) -> OnlineModel:
        """An online model that has read nothing yet; see `build_online` for the `datastore`."""
        return build_online(
            model,
            full_size,
            self.experts,
            config,
            self.oov,
            datastore,
            mixture=Online(len(self.experts)) if self.mixture == "online" else None,
            spelling=self.spelling,
        )


PAPER = MemoryConfig(index="ivfpq", k=PAPER_K, kernel=Kernel(sharpness=1.0), normalize=False)
"""How the paper's unbounded cache remembers."""


def recipe_for(model: Pretrained, preset: str | Sequence[str] = "full") -> Recipe:
    """What a preset, or a list of experts, is for this model."""
    oov = "characters" if isinstance(model.lm, RecurrentModel) else "unk"
    if not isinstance(preset, str):
        return Recipe(tuple(preset), oov=oov)
    if preset == "paper":
        return Recipe(available(model, "unbounded"), "online", "unk")
    if preset not in PRESETS or preset in OFFLINE:
        names = ["paper", *(name for name in PRESETS if name not in OFFLINE)]
        raise SettingError(f"preset {preset!r} is unknown; choose from {', '.join(names)}")
    mixture = "gated" if preset in GATED else "online"
    return Recipe(available(model, preset), mixture, oov)


def first_edition(model: Pretrained) -> Recipe:
    """What memories were made of before version 0.2: they go on as they began."""
    names = available(model, "full", "paper")
    former = {"dynamic_head": "adapted", "ngrams": "ngram"}
    return Recipe(tuple(dict.fromkeys(former.get(name, name) for name in names)), oov="unk")


def new_mixture(preset: str, experts: Sequence[str], width: int) -> Mixture:
    """How a preset mixes its experts; gated by states of that width, or by its own past alone."""
    if preset in OFFLINE:
        return Fixed(np.array([1 - SHARE, SHARE]))
    if preset in GATED:
        return Gated(len(experts), groups=[width] if width else [])
    return Online(len(experts))


def build_online(
    model: Pretrained,
    full_size: int | None,
    experts: Iterable[str],
    memory: MemoryConfig = MemoryConfig(),
    oov: str = "characters",
    datastore: Callable[[], Datastore] | None = None,
    mixture: Mixture | None = None,
    spelling: int = EDITION,
) -> OnlineModel:
    """An online model with these experts, which has read nothing yet; gated, or of that mixture.

    `full_size` is the full vocabulary of the paper's protocol: training and test words together.
    None is the open protocol: nothing of the future is known, and an expert that has nothing to go
    by is even over the network's own words. OOV words are read by their `characters`, or as `<unk>`
    as the paper has it. `datastore` makes that of the unbounded cache, if it lies elsewhere.
    """
    check_oov(oov)
    if model.lm.closed:
        # There are no OOV words, so the full vocabulary is known, whatever the protocol.
        full_size, oov = model.lm.base_size, "unk"
    vocabulary, names = model.vocabulary.copy(), list(experts)
    lm: LanguageModel = model.lm
    if oov == "characters":
        lm = OpenVocabularyModel(model.recurrent, model.speller, vocabulary)
    builder = _Builder(
        model, vocabulary, full_size, memory, datastore, "adapted" in names, spelling
    )
    built = {name: builder.expert(name) for name in names}
    mixture = mixture or Gated(len(built), groups=[model.lm.width])
    return OnlineModel(lm, vocabulary, built, mixture)


def build_preset(model: Pretrained, preset: str = "full") -> OnlineModel:
    """What a preset is for this model, with its mixture; nothing of the future is known."""
    experts = available(model, preset)
    mixture = new_mixture(preset, experts, model.lm.width)
    return build_online(model, None, experts, mixture=mixture)


class _Builder:
    """Experts of one model by their names."""

    def __init__(
        self,
        model: Pretrained,
        vocabulary: Vocabulary,
        full_size: int | None,
        memory: MemoryConfig,
        datastore: Callable[[], Datastore] | None,
        adapted: bool,
        spelling: int,
    ) -> None:
        self._model, self._vocabulary, self._full = model, vocabulary, full_size
        self._size = model.lm.base_size if full_size is None else full_size
        self._memory, self._datastore, self._edition = memory, datastore, spelling
        self._shared = SharedHead(model.headed) if adapted else None

    def expert(self, name: str) -> Expert:
        """An expert that has read nothing yet, but for what its name says."""
        match name:
            case "static":
                return Static(self._shared or self._model.lm)
            case "adapted":
                assert self._shared is not None
                return Adapted(AdaptedHead(self._shared))
            case "dynamic_head":
                return DynamicHead(self._model.headed)
            case "dynamic":
                from unbounded.lm import DynamicModel

                return Dynamic(DynamicModel(self._model.recurrent))
            case "uniform" if self._full is None:
                raise SettingError(
                    "a uniform expert needs the size of the full vocabulary, which the open "
                    "protocol does not know; use spelling"
                )
            case "uniform":
                return Uniform(self._size)
            case "spelling":
                return self._spelling()
            case "unigram":
                return Unigram(self._size)
            case "ngram":
                return NGram(self._size, open=self._full is None)
            case "ngrams" | "train_ngram":
                return self._after_training(apart=name == "ngrams")
            case "cache_128" | "cache_1024":
                return self._window(WINDOWS[name])
            case "local":
                return self._window(self._memory.window)
            case "unbounded":
                return self._cache((self._datastore or self._empty)(), self._memory.kernel)
            case "knn" | "tuned":
                k, part = self._memory.k or PAPER_K, self._model.lm.key_part
                return Offline(self._empty(), self._size, k=k, part=part)
        raise SettingError(f"expert {name!r} is unknown")

    def _empty(self) -> Local:
        kind, width = INDEXES[self._memory.index], self._model.lm.key_width
        return Auto(width, candidates=self._memory.candidates) if kind is Auto else kind(width)

    def _window(self, size: int) -> Cache:
        store = Flat(self._model.lm.key_width, window=size)
        return self._cache(store, self._memory.local_kernel)

    def _cache(self, store: Datastore, kernel: Kernel | None) -> Cache:
        return Cache(
            store,
            self._size,
            k=self._memory.k,
            kernel=kernel,
            normalize=self._memory.normalize,
            part=self._model.lm.key_part,
        )

    def _spelling(self) -> Spelling:
        words, edition = self._vocabulary, self._edition
        key = f"{self._model.fingerprint}-spelling{'' if edition == 1 else f'-{edition}'}"
        base = derived(key, lambda: Spelling(words, edition=edition).state())
        return Spelling(words, base, edition)

    def _after_training(self, *, apart: bool) -> NGram:
        """N-grams that have read what the network was trained on; what comes is counted `apart`
        too, or not, as in memories of before both were one expert."""
        text = self._model.text
        if text is None:
            raise SettingError(
                "experts 'ngrams' and 'train_ngram' need the training text, which this model does "
                "not keep; train it again, or take 'ngram'"
            )

        def read() -> dict[str, np.ndarray]:
            ngram = NGram(self._size, open=self._full is None)
            ngram.score(np.empty((len(text), 0), np.float32), text)
            return counted_apart(ngram.state()) if apart else ngram.state()

        key = f"{self._model.fingerprint}-{crc32(text.data):08x}-{self._size}-ngrams"
        base = derived(f"{key}-apart" if apart else key, read)
        return NGram(self._size, open=self._full is None, base=base)


def check_oov(oov: str) -> None:
    """Refuse a way of reading OOV words that there is not."""
    if oov not in OOV_READINGS:
        raise SettingError(f"--oov {oov!r} is unknown; use {' or '.join(OOV_READINGS)}")


def set_threads(threads: int) -> None:
    """Let training, the network and searching use so many threads each."""
    set_search_threads(threads)
    set_network_threads(threads)
