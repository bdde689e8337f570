"""Everything that can go wrong, as one tree; `except UnboundedError` catches it all.

    UnboundedError
    ├── CorpusError      text that cannot be read: missing, binary, empty, truncated
    ├── ModelError       a model folder that is missing, foreign, damaged, or of another format
    ├── TrainingError    training that cannot start, or whose loss is no longer a number
    ├── StoreError       a memory's folder that is foreign, newer, damaged, in use, of another model
    ├── EngineError      a distributed engine, or a memory on it, that cannot be used
    │   └── Unavailable  it does not answer; asked again later, it may
    ├── MemoryFault      arrays that do not fit the memory: wrong width, not finite
    ├── SettingError     a setting out of its range, or two that contradict each other
    └── MissingExtra     an optional dependency is not installed

Each message says what was found, what was needed and what to do, in one line.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real


class UnboundedError(Exception):
    """The base of every error this package raises on purpose."""


class CorpusError(UnboundedError):
    """Text that cannot be read."""


class ModelError(UnboundedError):
    """A model folder that cannot be used."""


class TrainingError(UnboundedError):
    """Training that cannot start or go on."""


class MemoryFault(UnboundedError):
    """Arrays that do not fit the memory."""


class StoreError(UnboundedError):
    """A memory's folder that cannot be used."""


class EngineError(UnboundedError):
    """A distributed engine that does not answer, or a memory on it that is another's."""


class Unavailable(EngineError):
    """An engine or a shard that did not answer; asked again later, it may."""


class SettingError(UnboundedError):
    """A setting that cannot be honored."""


class MissingExtra(UnboundedError):
    """An optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} is not installed; it comes with: pip install 'unbounded[{extra}]'"
        )


def check_type(value: object, name: str, *kinds: type, needed: str = "") -> None:
    """Refuse a value of another type; a bool is no number.

    >>> check_type("3", "n", int)
    Traceback (most recent call last):
    unbounded.errors.SettingError: n is of type str; give an int
    """
    # Numbers of NumPy are numbers.
    taken = tuple({int: Integral, float: Real}.get(kind, kind) for kind in kinds)
    if not isinstance(value, taken) or (isinstance(value, bool) and bool not in kinds):
        first = kinds[0].__name__
        needed = needed or f"a{'n' if first[0] in 'aeiou' else ''} {first}"
        raise SettingError(f"{name} is of type {type(value).__name__}; give {needed}")


def check_settings(settings: object, *, least_one: str = "", above_zero: str = "") -> None:
    """Refuse settings, named with a space between, that are not at least one, or not above zero."""
    for name in least_one.split():
        if getattr(settings, name) < 1:
            raise SettingError(f"{name} is {getattr(settings, name)}; it must be at least 1")
    for name in above_zero.split():
        if not getattr(settings, name) > 0:
            raise SettingError(f"{name} is {getattr(settings, name)}; it must be above 0")


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Import inside of this what an extra brings; without it, that is said."""
    try:
        yield
    except ImportError:
        raise MissingExtra(what, extra) from None


_EXTRAS = {
    "torch": "train",
    "faiss": "faiss",
    "matplotlib": "report",
    "pyarrow": "parquet",
    "pyppmd": "compressors",
    "pypdf": "pdf",
    **dict.fromkeys(("transformers", "tokenizers", "gguf", "accelerate"), "transformers"),
    "lm_eval": "harness",
    **dict.fromkeys(("kenlm", "pocketsphinx", "pygtrie"), "recognition"),
    "ray": "cluster",
    **dict.fromkeys(("fastapi", "starlette", "uvicorn", "prometheus_client"), "serve"),
}


def named(error: ModuleNotFoundError) -> Exception:
    """The error that says which extra brings a module; the error itself if none does.

    >>> named(ModuleNotFoundError(name="torch.nn"))
    MissingExtra("torch is not installed; it comes with: pip install 'unbounded[train]'")
    """
    package = (error.name or "").partition(".")[0]
    return MissingExtra(package, _EXTRAS[package]) if package in _EXTRAS else error
