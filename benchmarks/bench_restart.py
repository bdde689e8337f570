"""What a restart takes after kill -9 at the worst moment, and how long a writer ever waits.

    python benchmarks/bench_restart.py MODEL TEXT [--entries 1M] [--folder DIR] [--json FILE]

1. *Fill*: a memory of that many entries, less what is read next. Up to `--really` entries are read
   as always; the others are put in with their real words and the network's real states, but without
   being predicted, which is three times as fast and leaves the same arrays to write and to load.
2. *Read*: on, as always, until the next snapshot is almost due and the next step too; then the
   process kills itself. Bytes written for each word read, and the longest block, are from here.
3. *Restart*: a new process opens the memory for writing and predicts. Worst case: the most steps to
   go by and the most words to read again. All of it counts, imports too.
4. *Snapshot*: reads on until the snapshot was begun and is done; the longest block is the stall.

Each part is a process of its own. Wall clock, but for `cpu_seconds`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()

if True:  # imports are a part of a restart
    import numpy as np

    import unbounded
    from unbounded.console import parse_size
    from unbounded.corpus import Block, Line, Reader, blocks, read_sentences
    from unbounded.experts import Cache
    from unbounded.lm import Pretrained, load_model
    from unbounded.memory import Memory, checkpointing, local
    from unbounded.memory.cutting import runs_of
    from unbounded.presets import set_threads
    from unbounded.store import Store


def local_of(memory: Memory) -> local.LocalBackend:
    assert isinstance(memory.backend, local.LocalBackend)
    return memory.backend


def store_of(memory: Memory) -> Store:
    store = local_of(memory).store
    assert isinstance(store, Store)
    return store


def saving_of(memory: Memory) -> checkpointing.Checkpointing:
    saving = local_of(memory).saving
    assert saving is not None
    return saving


def text_from(paths: list[str], skip: int) -> Iterator[Line]:
    """The lines behind the first `skip`."""
    return islice(chain.from_iterable(Reader([path]) for path in paths), skip, None)


def put_in(memory: Memory, block: Block) -> None:
    """A block with its words and states, without predictions."""
    learned = local_of(memory).learned
    online = learned.online
    store_of(memory).append(block.words, list(block.documents), runs_of(block), time.time())
    learned.size = learned._size_for(len(online.vocabulary) + len(block.words))
    online.grow_vocabulary(learned.size)
    ids = online.vocabulary.encode(block.words)
    after, state = online.lm.advance(online.network_state, ids)
    before = np.concatenate([online.hidden, after])
    for expert in online.experts.values():
        if isinstance(expert, Cache):
            expert.memory.add(expert._keys(before[:-1]), ids)
        else:
            expert.score(before[:-1], ids)
    online.hidden, online.network_state = before[-1:], state


def fill(model: Pretrained, given: argparse.Namespace, entries: int) -> dict[str, Any]:
    """Make the memory; how many lines it took."""
    lines = 0

    def counted() -> Iterator[Line]:
        nonlocal lines
        for line in text_from(given.text, 0):
            lines += 1
            yield line

    began = time.perf_counter()
    memory = unbounded.open(given.memory, model)
    for number, block in enumerate(blocks(read_sentences(counted(), model.tokenizer), local.BLOCK)):
        if len(memory) >= entries:
            break
        if entries <= given.really:
            local_of(memory)._read(block, None)
        else:
            put_in(memory, block)
        if number % 1000 == 999:
            took = time.perf_counter() - began
            print(f"{len(memory):,} entries, {1e6 * took / len(memory):.0f} µs", file=sys.stderr)
    store_of(memory).sync()
    # Such growth as has come is all in the snapshot.
    took, began = time.perf_counter() - began, time.perf_counter()
    local_of(memory).snapshot()
    wrote = time.perf_counter() - began
    stats = memory.stats()
    memory.close()
    return {"lines": lines, "seconds": took, "snapshot_seconds": wrote, "bytes": stats["bytes"]}


def written() -> int:
    with open("/proc/self/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file)["wchar"])


def read(model: Pretrained, given: argparse.Namespace, until: str) -> dict[str, Any]:
    """Read on until a snapshot is almost due, or until one has been written."""
    memory = unbounded.open(given.memory, model)
    due = max(checkpointing.SNAPSHOT_WORDS, len(memory) // checkpointing.SNAPSHOT_SHARE)
    entries, bytes_before = len(memory), written()
    times: list[float] = []
    began = time.perf_counter()
    snapshots = set(Path(given.memory).glob("snapshot-*[0-9]"))
    for _ in memory.follow(text_from(given.text, given.skip)):
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
        if until == "due":
            late = saving_of(memory).since_full > due - checkpointing.DELTA_WORDS - 2 * local.BLOCK
            if late and saving_of(memory).since > checkpointing.DELTA_WORDS - 2 * local.BLOCK:
                break
        elif not store_of(memory).checkpoints.busy and snapshots != set(
            Path(given.memory).glob("snapshot-*[0-9]")
        ):
            break
    words = len(memory) - entries
    found: dict[str, Any] = {
        "words": words,
        "microseconds_a_word": 1e6 * sum(times) / words,
        "bytes_a_word": (written() - bytes_before) / words,
        "median_block": float(np.median(times)),
        "longest_block": max(times[1:]),
        "since_snapshot": saving_of(memory).since_full,
        "since_step": saving_of(memory).since,
    }
    if until == "due":
        found["next"] = [g.word for g in memory.predict("the", 5).words]
        found["nats"] = memory.score("what was said before is said after").nats.tolist()
    return found


def restart(model: Pretrained, given: argparse.Namespace, ready: float) -> dict[str, Any]:
    """Open for writing and predict."""
    began, heard = time.perf_counter(), list[float]()
    memory = unbounded.open(
        given.memory, model, show=lambda done, total: heard.append(time.perf_counter() - began)
    )
    opened = time.perf_counter() - began
    guesses = [g.word for g in memory.predict("the", 5).words]
    whole = time.perf_counter() - BEGAN
    cpu = time.process_time()
    local_of(memory).learned.state()
    return {
        "seconds": whole,
        "cpu_seconds": cpu,
        "cpu_seconds_to_copy_the_state": time.process_time() - cpu,
        "until_first_block_was_read_again": heard[0],
        "imports_and_model": ready,
        "open": opened,
        "read_again": saving_of(memory).since,
        "by_steps": saving_of(memory).since_full - saving_of(memory).since,
        "next": guesses,
        "nats": memory.score("what was said before is said after").nats.tolist(),
    }


def part(given: argparse.Namespace, role: str, entries: int, folder: Path, skip: int) -> Any:
    """Run one part in a process of its own; what it found."""
    out = folder / f"{role}.json"
    command = [sys.executable, __file__, str(given.model), *given.text, "--role", role]
    command += ["--entries", str(entries), "--memory", str(folder / "memory"), "--out", str(out)]
    command += ["--really", str(given.really), "--skip", str(skip)]
    done = subprocess.run(command, check=False)
    if done.returncode != (-9 if role == "due" else 0):
        raise SystemExit(f"{role} ended with {done.returncode}")
    return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--entries", default="1M")
    parser.add_argument("--really", type=parse_size, default=1_500_000)
    parser.add_argument("--folder", type=Path, help="where memories go [default: a temporary one]")
    parser.add_argument("--keep", action="store_true", help="leave them there, use what is there")
    parser.add_argument("--json", type=Path)
    for name in ("--role", "--memory", "--out"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--skip", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role is not None:
        set_threads(2)
        model = load_model(given.model)
        ready = time.perf_counter() - BEGAN
        entries = int(given.entries)
        if given.role == "fill":
            found = fill(model, given, entries)
        elif given.role == "restart":
            found = restart(model, given, ready)
        else:
            found = read(model, given, given.role)
        Path(given.out).write_text(json.dumps(found))
        if given.role == "due":
            os.kill(os.getpid(), 9)
        os._exit(0)
    results = []
    for entries in map(parse_size, given.entries.split(",")):
        folder = given.folder or Path(tempfile.mkdtemp())
        folder = folder / str(entries)
        folder.mkdir(parents=True, exist_ok=True)
        # So that after the last part there are as many as asked for.
        first = entries * checkpointing.SNAPSHOT_SHARE // (checkpointing.SNAPSHOT_SHARE + 1)
        if not (given.keep and (folder / "fill.json").exists()):
            part(given, "fill", first, folder, 0)
        filled = json.loads((folder / "fill.json").read_text())
        result = {"entries": entries, "really_read": first <= given.really, "fill": filled}
        result["read"] = part(given, "due", entries, folder, filled["lines"])
        result["restart"] = part(given, "restart", entries, folder, 0)
        result["snapshot"] = part(given, "done", entries, folder, filled["lines"])
        same = all(result["read"].pop(n) == result["restart"].pop(n) for n in ("next", "nats"))
        result["equal"] = same
        results.append(result)
        print(json.dumps(result, indent=1))
        if not given.keep:
            shutil.rmtree(folder)
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
