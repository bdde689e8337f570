"""The arrays that flow between folders: n steps, d hidden units, m experts, k neighbors."""

import numpy as np

from unbounded.shapes import Float, Int

Ids = Int[np.ndarray, " n"]
"""One word a step."""

Known = Int[np.ndarray, " entries"]
"""The word of every entry that can be found, oldest first."""

Hidden = Float[np.ndarray, "n d"]
"""One hidden state a step: what the network knows before that step's word."""

Probs = Float[np.ndarray, " n"]
"""The probability of one word a step."""

Table = Float[np.ndarray, "n m"]
"""One step a row, one expert a column."""

Context = Float[np.ndarray, "n f"]
"""What is known before each step's word, as signals for a mixture; NaN where one is not known."""

Distances = Float[np.ndarray, "n k"]
Positions = Int[np.ndarray, "n k"]

State = tuple[np.ndarray, ...]
"""What a network carries from one word to the next; a value, never changed in place."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
