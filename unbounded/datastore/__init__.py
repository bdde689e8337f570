"""Hidden states to neighbors; the only folder that imports faiss."""

from unbounded.datastore.auto import Auto as Auto
from unbounded.datastore.coded import Coded as Coded
from unbounded.datastore.datastore import Datastore as Datastore
from unbounded.datastore.datastore import IndexEvent as IndexEvent
from unbounded.datastore.datastore import Neighbors as Neighbors
from unbounded.datastore.datastore import Votes as Votes
from unbounded.datastore.flat import Flat as Flat
from unbounded.datastore.ivfpq import IVFPQ as IVFPQ

Local = Flat | Coded
"""Those in this process: they can tell the `words` of all their entries."""
