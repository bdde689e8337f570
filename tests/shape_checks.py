"""Arrays are checked against the shapes that annotations say, while tests run.

Only what names a shape is wrapped: for every function of the package, tests would take twice as
long, and what else annotations say is mypy's to check. Imported before the package is.
"""

import inspect
from collections.abc import Callable
from typing import Any, get_args

import jaxtyping

_checked: Callable[..., Any] = jaxtyping.jaxtyped


def names_shape(said: Any) -> bool:
    """Whether an annotation says the shape of an array somewhere."""
    if inspect.isclass(said) and issubclass(said, jaxtyping.AbstractArray):
        return True
    return any(map(names_shape, said if isinstance(said, list) else get_args(said)))


def _decorated(it: Any, typechecker: Any) -> Any:
    if isinstance(it, classmethod | staticmethod):
        return type(it)(_decorated(it.__func__, typechecker))
    if isinstance(it, property):
        return property(*(one and _decorated(one, typechecker) for one in (it.fget, it.fset)))
    function = it.__init__ if inspect.isclass(it) else it
    if any(map(names_shape, getattr(function, "__annotations__", {}).values())):
        return _checked(it, typechecker=typechecker)
    return it


def _jaxtyped(*, typechecker: Any) -> Callable[[Any], Any]:
    """What the import hook puts on every function and class."""
    return lambda it: _decorated(it, typechecker)


jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment]
jaxtyping.install_import_hook("unbounded", "beartype.beartype")
