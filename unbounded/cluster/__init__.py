"""Keys beyond one machine: shards on a distributed engine; the only folder that imports ray."""

from unbounded.cluster.connecting import connected as connected
from unbounded.cluster.engine import Address as Address
from unbounded.cluster.engine import Call as Call
from unbounded.cluster.engine import Engine as Engine
from unbounded.cluster.engine import Here as Here
from unbounded.cluster.engine import Way as Way
from unbounded.cluster.shard import Shard as Shard
from unbounded.cluster.sharded import Sharded as Sharded
