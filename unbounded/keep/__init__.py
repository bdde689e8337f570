"""A memory that is kept: a model joined to a store, for as long as there is something to read."""

from unbounded.keep.budget import Budget as Budget
from unbounded.keep.kept import KeptMemory as KeptMemory
from unbounded.keep.names import checked_name as checked_name
from unbounded.keep.opening import open as open
from unbounded.keep.prediction import Guess as Guess
from unbounded.keep.prediction import Passage as Passage
from unbounded.keep.prediction import Prediction as Prediction
from unbounded.keep.surprise import Surprise as Surprise
