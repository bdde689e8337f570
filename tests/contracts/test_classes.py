"""A class is abstract or final: what is concrete is overridden by nobody."""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import unbounded

# It is a model of somebody else's class, and takes seconds to load.
LEFT_OUT = {"unbounded.__main__", "unbounded.integrations.lm_eval"}


def classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(unbounded.__path__, "unbounded."):
        if module.name not in LEFT_OUT:
            for found in vars(import_module(module.name)).values():
                if inspect.isclass(found) and found.__module__ == module.name:
                    yield found


def test_nothing_concrete_is_overridden() -> None:
    overridden = {
        f"{base.__qualname__}.{name} by {own.__qualname__}"
        for own in classes()
        for base in own.__mro__[1:]
        if base.__module__.startswith("unbounded")
        for name, was in vars(base).items()
        if name in vars(own) and (inspect.isroutine(was) or isinstance(was, property))
        if not name.startswith("__") and not getattr(was, "__isabstractmethod__", False)
    }
    assert overridden == set()


def test_what_has_heirs_has_nothing_but_fields_or_is_abstract() -> None:
    bases = {base for own in classes() for base in own.__mro__[1:]} & set(classes())
    with_methods = {
        base.__qualname__
        for base in bases
        if not inspect.isabstract(base)
        if any(inspect.isroutine(was) and name[0] != "_" for name, was in vars(base).items())
    }
    assert with_methods == set()
