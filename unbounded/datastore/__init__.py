"""Hidden states to neighbors; the only folder that imports faiss."""

from unbounded.datastore.auto import Auto
from unbounded.datastore.datastore import Datastore, Neighbors
from unbounded.datastore.flat import Flat
from unbounded.datastore.index import Index, IndexEvent
from unbounded.datastore.indexed import IndexedDatastore
from unbounded.datastore.ivfpq import IVFPQ
from unbounded.datastore.votes import Votes
from unbounded.datastore.window import Window

__all__ = [
    "IVFPQ",
    "Auto",
    "Datastore",
    "Flat",
    "Index",
    "IndexEvent",
    "IndexedDatastore",
    "Neighbors",
    "Votes",
    "Window",
]
