"""Hidden states to neighbors; the only folder that imports faiss."""

from unbounded.datastore.auto import Auto
from unbounded.datastore.coded import Coded
from unbounded.datastore.datastore import Datastore, IndexEvent, Neighbors
from unbounded.datastore.flat import Flat
from unbounded.datastore.ivfpq import IVFPQ
from unbounded.datastore.votes import Votes

Local = Flat | Coded
"""Those in this process: they can tell the `words` of all their entries."""

__all__ = [
    "IVFPQ",
    "Auto",
    "Coded",
    "Datastore",
    "Flat",
    "IndexEvent",
    "Local",
    "Neighbors",
    "Votes",
]
