"""An engine in a process of its own: when it ends, as Ray's do with their node, we do not."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, final

from unbounded.cluster.engine import Call, Engine, Pending, T, failing
from unbounded.errors import EngineError, MissingExtra, Unavailable, UnboundedError

_START_PATIENCE = 120.0

# Shared arrays that the other process has at hand.
_SHARED = 8


@dataclass(frozen=True)
class _Shared:
    """In the place of an array that the other process has already."""

    number: int
    array: Any

    def __len__(self) -> int:
        return len(self.array)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Shared, (self.number, None)


@final
class SubprocessProxy(Engine):
    """Calls go through a pipe to a process that has joined the engine.

    It is started when it is needed and the engine answers, and again when it has ended. Answers
    are copied once more than without it.
    """

    def __init__(
        self, join: Callable[[], Engine], count: int, check: Callable[[], None], patience: float
    ) -> None:
        """`join` must be picklable; `check` raises `Unavailable` while it is of no use to join."""
        self.count = count
        self._join, self._check, self._patience = join, check, patience
        self._process: Any = None
        self._pipe: Connection | None = None
        self._calls = 0
        self._shares = 0
        self._shared: deque[int] = deque(maxlen=_SHARED)
        self._open()

    def _open(self) -> None:
        """Start the process if it can join; a refusal that is no absence is raised."""
        try:
            self._check()
        except Unavailable as error:
            self._why = str(error)
            return
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_serve, args=(theirs, self._join), daemon=True)
        process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        self._shared.clear()
        try:
            self._receive(_START_PATIENCE)
        except Unavailable as error:
            self._end(str(error))
        except BaseException:
            self._end("refused")
            raise

    def _end(self, why: str) -> None:
        self._why = why
        if self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
        self._pipe = self._process = None

    def _send(self, *message: Any) -> None:
        if self._pipe is None:
            raise Unavailable(self._why)
        try:
            self._pipe.send(message)
        except OSError:
            self._end("the process that had joined it has ended")
            raise Unavailable(self._why) from None

    def _receive(self, patience: float | None) -> Any:
        assert self._pipe is not None
        try:
            if not self._pipe.poll(patience):
                self._end(f"no answer in {patience:.0f} s")
                raise Unavailable(self._why)
            good, answer = self._pipe.recv()
        except (EOFError, OSError):
            self._end("the process that had joined it has ended")
            raise Unavailable(self._why) from None
        if good is None:
            # Its last word.
            self._end(answer)
            raise Unavailable(self._why)
        if not good:
            raise answer
        return answer

    def _ask(self, patience: float | None, *message: Any) -> Any:
        self._send(*message)
        return self._receive(patience)

    def gone(self) -> str | None:
        """Why nobody has joined."""
        return self._why if self._pipe is None else None

    def share(self, array: Any) -> Any:
        """A number, under which the other process gets the array when it is needed."""
        self._shares += 1
        return _Shared(self._shares, array)

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        """Send the call."""
        self._calls += 1
        number, process = self._calls, self._process
        try:
            for arg in call.args:
                if isinstance(arg, _Shared) and arg.number not in self._shared:
                    self._send("share", arg.number, arg.array)
                    self._shared.append(arg.number)
            self._send("begin", number, shard, call)
        except Unavailable as error:
            return failing(error)

        def pending() -> T:
            if process is not self._process:
                raise Unavailable(f"shard {shard} is unavailable")
            # Somewhat longer than the other process waits.
            patience = 1.5 * self._patience + 5 if call.quick else None
            answer: T = self._ask(patience, "get", number)
            return answer

        return pending

    def revive(self, shard: int) -> None:
        """Join if nobody has; otherwise let the engine see to the shard."""
        if self._pipe is None:
            self._open()
            return
        try:
            self._check()
            self._ask(self._patience + 5, "revive", shard)
        except Unavailable as error:
            self._end(str(error))

    def answers(self, shard: int) -> bool:
        """Join if nobody has, and ask."""
        try:
            self._check()
            if self._pipe is None:
                self._open()
            return bool(self._ask(self._patience + 5, "answers", shard))
        except Unavailable as error:
            self._end(str(error))
            return False

    def close(self) -> None:
        """End the process; the shards stay."""
        self._end("closed")


def _serve(pipe: Connection, join: Callable[[], Engine]) -> None:
    """The other process: carry out what comes through the pipe until it is closed."""
    # What is to be said of an engine that ends the reader says.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    engine: Engine | None = None
    begun: dict[int, Pending[Any]] = {}
    shared: dict[int, Any] = {}

    def carry_out(what: str, *args: Any) -> Any:
        assert engine is not None
        if what == "get":
            return begun.pop(args[0])()
        return getattr(engine, what)(*args)

    try:
        engine = join()
    except UnboundedError as error:
        pipe.send((False, _plain(error)))
        return
    try:
        pipe.send((True, None))
        while True:
            what, *args = pipe.recv()
            if what == "share":
                shared[args[0]] = engine.share(args[1])
                while len(shared) > _SHARED:
                    del shared[min(shared)]
            elif what == "begin":
                number, shard, call = args
                call.args = tuple(
                    shared[arg.number] if isinstance(arg, _Shared) else arg for arg in call.args
                )
                begun[number] = engine.begin(shard, call)
                # What was expected and did not come is never asked for.
                while len(begun) > 64 + 16 * engine.count:
                    del begun[min(begun)]
            else:
                try:
                    answer = True, carry_out(what, *args)
                except UnboundedError as error:
                    answer = False, _plain(error)
                pipe.send(answer)
    except UnboundedError as error:
        # Nobody waits for what was shared or begun: whoever asks next hears why there is no more.
        pipe.send((None, str(error)))
    except (EOFError, OSError, KeyboardInterrupt):
        pass


def _plain(error: UnboundedError) -> UnboundedError:
    """The same without its causes, which may be of classes that only this process knows."""
    return EngineError(str(error)) if isinstance(error, MissingExtra) else type(error)(str(error))
