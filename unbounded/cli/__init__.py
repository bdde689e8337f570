"""The command line: one thin function a verb.

Verbs import what they need when they are called: `--help` answers at once instead of waiting for
torch (docs/decisions.md). To import a module here is to add its verbs.
"""

try:
    from unbounded.cli import (  # noqa: F401
        ask_command,
        memory_command,
        model_command,
        read_command,
        service_command,
    )
    from unbounded.cli.main import main as main
except KeyboardInterrupt:
    # Whoever stops a command while it is still being loaded is told nothing either.
    raise SystemExit(130) from None
