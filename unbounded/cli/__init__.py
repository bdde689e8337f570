"""The command line: one thin function a verb, one file a verb.

Verbs import what they need when they are called: `--help` answers at once instead of waiting for
torch (docs/decisions.md). To import one is to add its verb.
"""

from unbounded.cli import (  # noqa: F401
    ask,
    bench,
    demo,
    evaluate,
    keys,
    memory,
    read,
    reproduce,
    serve,
    train,
)
from unbounded.cli.app import main as main
