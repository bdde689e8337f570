"""The command line: one thin function a verb, one file a verb.

Verbs import what they need when they are called: `--help` answers at once instead of waiting for
torch (docs/decisions.md).
"""

from unbounded.cli import bench, demo, evaluate, reproduce, train  # noqa: F401  (each adds its verb)
from unbounded.cli.app import main as main
