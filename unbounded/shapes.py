"""Shapes of arrays, as annotations say them: `Float[np.ndarray, "n d"]`.

Where jaxtyping is at work, as in the tests, they are checked; elsewhere they are only read, and
nobody waits for it or needs it.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
    from jaxtyping import Int32 as Int32
    from jaxtyping import UInt as UInt
else:

    class _Shaped:
        """An array of any shape."""

        def __class_getitem__(cls, said: tuple[Any, str]) -> Any:
            return said[0]

    Bool = Float = Int = Int32 = UInt = _Shaped
