"""Keys beyond one machine: shards on a distributed engine; the only folder that imports ray."""

from unbounded.cluster.connecting import Shards as Shards
from unbounded.cluster.connecting import connected as connected
from unbounded.cluster.engine import Address as Address
from unbounded.cluster.engine import Call as Call
from unbounded.cluster.engine import Engine as Engine
from unbounded.cluster.engine import Here as Here
from unbounded.cluster.shard import Shard as Shard
from unbounded.cluster.sharded import Sharded as Sharded
from unbounded.cluster.sharded_keys import Way as Way
