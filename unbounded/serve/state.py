"""What lives as long as the service does."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, final

from unbounded.lm import Pretrained, RecurrentModel
from unbounded.presets import set_threads
from unbounded.serve.batching import Batching
from unbounded.serve.byte_fallback import Spelling
from unbounded.serve.keys import Keys
from unbounded.serve.limits import Limits
from unbounded.serve.observing import Observer
from unbounded.serve.registry import Registry
from unbounded.serve.watching import Watch
from unbounded.serve.workers import Workers


@final
class Service:
    """The shelf of memories, the threads that work on them, the keys, the figures."""

    def __init__(
        self,
        root: Path,
        model: Pretrained,
        *,
        keys: Keys | None,
        limits: Limits,
        observer: Observer,
        threads: int,
        batched: bool,
        engine: str | None = None,
    ) -> None:
        self.root = root
        self.model = model
        self.spelling = Spelling(model.vocabulary, closed=model.lm.closed)
        self.keys = keys
        self.limits = limits
        self.observer = observer
        self.ready = False
        self._threads = threads
        self._batched = batched
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watch: Watch | None = None
        if engine is not None:
            self._watch = Watch(root, engine, lambda line: observer.log("shards", said=line))

    def start(self) -> None:
        """Have threads; from now on it is ready."""
        # Threads are for requests: one request uses one. With two each, and no core to spare, all
        # would wait for each other.
        set_threads(1)
        self.workers = Workers(self._threads)
        batching = None
        if self._batched and isinstance(self.model.lm, RecurrentModel):
            batching = Batching(self.model.lm, self.workers, self.observer.batches.observe)
        self.registry = Registry(
            self.root,
            self.model,
            self.workers,
            self.limits,
            batching=batching,
            say=lambda name, event: self.observer.log("memory", memory=name, said=event),
        )
        if self._watch is not None:
            self._watch.start()
        self.ready = True

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Work that goes on even if whoever asked for it leaves."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Let what is under way end at its next block, close all memories, end the threads."""
        self.ready = False
        self.registry.stop_reading()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        if self._watch is not None:
            await asyncio.to_thread(self._watch.stop)
        await self.registry.close()
        self.workers.close()
        self.observer.log("stopped")

    def measure(self) -> None:
        """Bring the figures up to date."""
        sessions = self.registry.opened().values() if self.ready else []
        self.observer.open.set(len(sessions))
        if self._watch is not None:
            self.observer.shards(self._watch.latest)
        self.observer.entries.set(sum(len(session.memory) for session in sessions))
        self.observer.queue.set(len(self.workers) if self.ready else 0)
