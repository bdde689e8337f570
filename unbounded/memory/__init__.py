"""Hidden states to neighbors; the only folder that imports faiss."""

from unbounded.memory.auto import Auto
from unbounded.memory.flat import Flat
from unbounded.memory.index import Index, IndexEvent
from unbounded.memory.ivfpq import IVFPQ
from unbounded.memory.memory import Memory
from unbounded.memory.pairs import Neighbors, Pairs
from unbounded.memory.votes import Votes
from unbounded.memory.window import Window

__all__ = [
    "IVFPQ",
    "Auto",
    "Flat",
    "Index",
    "IndexEvent",
    "Memory",
    "Neighbors",
    "Pairs",
    "Votes",
    "Window",
]
