"""A memory that is kept: a model joined to a store, for as long as there is something to read."""

from unbounded.memory.file_reading import FilesRead as FilesRead
from unbounded.memory.forgetting import Budget as Budget
from unbounded.memory.integrity import Finding as Finding
from unbounded.memory.log_contents import Document as Document
from unbounded.memory.memory import Memory as Memory
from unbounded.memory.opening import checked_name as checked_name
from unbounded.memory.opening import open as open
from unbounded.memory.prediction import Guess as Guess
from unbounded.memory.prediction import Passage as Passage
from unbounded.memory.prediction import Prediction as Prediction
from unbounded.memory.prediction import Reading as Reading
from unbounded.memory.sampling import Piece as Piece
from unbounded.memory.sampling import SamplingParams as SamplingParams
from unbounded.memory.sampling import generate as generate
