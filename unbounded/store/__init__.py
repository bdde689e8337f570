"""State ↔ disk: format, journal, snapshots; knows arrays and JSON, no model class, no pickle."""

from unbounded.store.disk import Disk as Disk
from unbounded.store.disk import RealDisk as RealDisk
from unbounded.store.snapshot import Snapshot as Snapshot
from unbounded.store.store import Store as Store
from unbounded.store.text_log import InProcess as InProcess
from unbounded.store.text_log import TextLog as TextLog
