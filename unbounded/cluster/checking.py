"""Whether a shard's files hold what the shard says it has."""

from unbounded.cluster.documents import Contents
from unbounded.cluster.messages import GONE, from_payload
from unbounded.store.journal import Journal
from unbounded.store.layout import snapshot_paths
from unbounded.store.records import read_json
from unbounded.store.snapshot import read_arrays

Found = list[tuple[str, str, str]]
"""Where something is wrong, what, and what to do."""


def findings(journal: Journal, contents: Contents, entries: int) -> Found:
    """Every checksum of journal and snapshots again, and what they hold against what is known."""
    found: Found = []
    held: dict[str, int] = {}
    path, read = journal.path, journal.first
    for record in journal.since(0):
        if record.kind == GONE:
            for name in read_json(record.payload)["documents"]:
                held.pop(name, None)
        else:
            piece = from_payload(record.payload)
            held[piece.document] = held.get(piece.document, 0) + len(piece.words)
        read = record.number + 1
    if read < journal.records:
        what = f"unreadable from byte {journal.end_of(read):,} on"
        found.append((str(path), what, "restore it from a copy"))
    elif held != contents.lengths() or sum(held.values()) != entries:
        what = f"{sum(held.values()):,} entries, and {entries:,} are in the index"
        found.append((str(path), what, "remove the snapshots beside it and start the shard again"))
    for snapshot in snapshot_paths(path.parent, journal.generation):
        try:
            read_arrays(snapshot)
        except (OSError, ValueError, KeyError) as error:
            advice = "remove that folder: it is made again from the journal"
            found.append((str(snapshot), f"damaged ({error})", advice))
    return found
