import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from unbounded.corpus import Line, Reader
from unbounded.corpus import reader as reader_module
from unbounded.corpus.sources import Source
from unbounded.errors import CorpusError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def texts(*paths: str | Path) -> list[str]:
    return [line.text for line in Reader(paths)]


def refusal(*paths: str | Path) -> str:
    """The message with which paths are refused, once it is known to be a single line."""
    with pytest.raises(CorpusError) as caught:
        list(Reader(paths))
    message = str(caught.value)
    assert "\n" not in message
    assert message.count(";") >= 2, "what was found; what was needed; what to do"
    return message


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def test_a_blank_line_ends_a_document_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n \none\ntwo\n\n\t\nthree\n\n")
    assert list(Reader([path])) == [
        Line(str(path), 3, "one"),
        Line(str(path), 4, "two"),
        Line(f"{path}#2", 7, "three"),
    ]


def test_a_file_ends_a_line_and_a_document_and_is_read_as_often_as_it_is_given(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / name for name in "bab"]
    for path in paths:
        path.write_text(f"{path.name} without a line feed")
    found = [(line.document, line.text[0]) for line in Reader(paths)]
    assert found == [(str(path), path.name) for path in paths]


def test_only_line_feeds_end_lines_and_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    text = "\ufeffa\u2028b\x0bc\x0cd\x85e\rf\r\ng\r"
    (tmp_path / "a").write_bytes(text.encode())
    assert texts(tmp_path / "a") == ["a\u2028b\x0bc\x0cd\x85e\rf", "g"]


@pytest.mark.parametrize("packer", PACKERS)
def test_packed_files_are_known_by_their_bytes_and_not_by_their_names(
    tmp_path: Path, packer: str
) -> None:
    path = tmp_path / "text.bin"
    path.write_bytes(PACKERS[packer]("ä one\n".encode()) + PACKERS[packer](b"two\n"))
    reader = Reader([path])
    assert [line.text for line in reader] == ["ä one", "two"]
    assert reader.bytes_read == reader.bytes_total == path.stat().st_size


@pytest.mark.parametrize("packer", PACKERS)
def test_standard_input_may_be_packed(stdin: Callable[[bytes], None], packer: str) -> None:
    stdin(PACKERS[packer](b"one\n\ntwo"))
    reader = Reader(["-"])
    assert list(reader) == [Line("-", 1, "one"), Line("-#2", 3, "two")]
    assert reader.bytes_total is None


def test_a_live_stream_is_read_as_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seen = threading.Event()

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            for byte in b"first\n":
                pipe.write(bytes([byte]))
            assert seen.wait(60)
            pipe.write(b"second\n")

    thread = threading.Thread(target=write)
    thread.start()
    lines = iter(Reader([path]))
    first = next(lines)
    seen.set()
    assert [first.text, *(line.text for line in lines)] == ["first", "second"]
    thread.join()


def test_a_folder_gives_its_text_files_sorted_and_nothing_else(tmp_path: Path) -> None:
    wanted = ["README", "b/a.txt", "b/c.md", "b/d.log.gz", "c.rst", "d.zst", "e.TXT"]
    for name in [*wanted, ".hidden", ".git/x.txt", "b/data.json", "photo.jpg", "x.tar.gz"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "b" / "itself").symlink_to("itself")
    os.mkfifo(tmp_path / "pipe.txt")
    assert texts(tmp_path) == wanted


def test_a_file_that_is_named_is_read_whatever_its_suffix(tmp_path: Path) -> None:
    (tmp_path / ".code.py").write_text("x = 1")
    assert texts(tmp_path / ".code.py") == ["x = 1"]


@pytest.mark.parametrize("packer", PACKERS)
def test_broken_utf8_is_replaced_and_counted(tmp_path: Path, packer: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(
        PACKERS[packer]("real \ufffd one\n".encode() + b"caf\xe9 \xf0\x9f \xc3\nfine \xe2\x82")
    )
    reader = Reader([path])
    assert [line.text for line in reader] == [
        "real \ufffd one",
        "caf\ufffd \ufffd \ufffd",
        "fine \ufffd",
    ]
    assert reader.replaced == 4
    assert reader.damaged == {str(path): 4}


@given(st.binary(max_size=60), st.integers(1, 7))
def test_where_the_bytes_are_cut_changes_nothing(data: bytes, size: int) -> None:
    def read(chunk: int) -> tuple[list[str], int]:
        reader = Reader([])
        source = Source("x", "x", None)
        pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader_module, "read_chunks", lambda *_: iter(pieces))
            patch.setattr(reader_module, "refuse_binary", lambda *_: None)
            patch.setattr(reader_module, "_refuse_wide", lambda *_: None)
            return [line.text for line in reader._lines(source)], reader.replaced

    whole = [line.replace("\0", "\ufffd") for line in data.decode("utf-8", "replace").split("\n")]
    expected = [line.removesuffix("\r") for line in whole]
    if not data.startswith(b"\xef"):
        assert [line for line in expected if line.strip()] == read(60)[0]
        assert read(size) == read(60)


def test_a_late_nul_byte_is_replaced_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"word\n" * 100_000 + b"a\0b\n")
    reader = Reader([tmp_path / "a"])
    assert [line.text for line in reader][-1] == "a\ufffdb"
    assert reader.replaced == 1


@pytest.mark.parametrize("data", [b"PK\x03\x04\x00\x00", b"text\n\0", bytes(range(128, 256)) * 9])
@pytest.mark.parametrize("packer", PACKERS)
def test_a_binary_file_is_refused(tmp_path: Path, data: bytes, packer: str) -> None:
    (tmp_path / "a.txt").write_bytes(PACKERS[packer](data))
    assert "a.txt is not text" in refusal(tmp_path)


WIDE = ("utf-16", "utf-16-be", "utf-32", "utf-32-be")
BEGINNINGS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
REFUSED = {
    **{"\ufeffhello\n".encode(encoding): "iconv" for encoding in WIDE},
    # An archive that is only a beginning, and one in another.
    **dict.fromkeys(BEGINNINGS, "damaged"),
    gzip.compress(gzip.compress(b"word\n" * 999, mtime=0), mtime=0): "not text",
    b"": "no text",
    b" \n\n\t\n": "no text",
}


@pytest.mark.parametrize("data", REFUSED)
def test_what_is_no_text_or_no_whole_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert REFUSED[data] in refusal(tmp_path / "a")


def test_no_text_at_all_is_refused_but_one_empty_file_is_not(tmp_path: Path) -> None:
    empty, blank, full = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    empty.touch()
    blank.write_text(" \n\n\t\n")
    full.write_text("word")
    assert texts(tmp_path) == ["word"]
    assert "no text" in refusal(empty, blank)
    assert "no path at all" in refusal()


def test_a_missing_path_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("word")
    lines = iter(Reader([tmp_path / "a", tmp_path / "nowhere"]))
    with pytest.raises(CorpusError, match="nowhere cannot be read"):
        next(lines)
    assert "cannot be read" in refusal("nul\0byte")
    assert "an empty path cannot be read" in refusal("")
    assert "two lines" in refusal(tmp_path / "two\nlines")


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    assert "folder without text" in refusal(tmp_path)


@pytest.mark.parametrize("packer", [name for name in PACKERS if name != "plain"])
def test_a_truncated_archive_gives_what_it_has_and_is_then_refused(
    tmp_path: Path, packer: str
) -> None:
    def end(n: int) -> str:
        return " " if n % 50 else "\n"

    text = "".join(f"{n * 7919 % 99_991}{end(n)}" for n in range(300_000))
    packed = PACKERS[packer](text.encode())
    (tmp_path / "a").write_bytes(packed[: len(packed) * 3 // 4])
    got: list[Line] = []
    with pytest.raises(CorpusError, match="a is a damaged archive") as caught:
        got.extend(Reader([tmp_path / "a"]))
    assert "\n" not in str(caught.value)
    assert len(got) > 1000
    assert text.startswith("".join(f"{line.text}\n" for line in got))


@pytest.mark.parametrize("packer", [name for name in PACKERS if name != "plain"])
def test_a_damaged_archive_is_refused(tmp_path: Path, packer: str) -> None:
    packed = bytearray(PACKERS[packer](os.urandom(1000).hex().encode() * 50))
    packed[30:60] = bytes(30)
    (tmp_path / "a").write_bytes(packed)
    assert "damaged" in refusal(tmp_path / "a")


def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.txt").write_text("word")
    # The rights of a file do not bind the superuser, so they are not tried here.
    monkeypatch.setattr("builtins.open", forbid)
    assert "Permission denied" in refusal(tmp_path / "a.txt")
    monkeypatch.setattr("os.scandir", forbid)
    assert "Permission denied" in refusal(tmp_path)


def test_a_path_that_is_not_unicode_still_names_its_document(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt")
    with open(path, "wb") as file:
        file.write(b"word")
    (line,) = Reader([tmp_path])
    assert line.document == f"{tmp_path}/caf\ufffd.txt"
    assert texts(os.fsdecode(path)) == ["word"]


@given(st.text(st.sampled_from("ab \t\n"), max_size=60), st.integers(1, 9))
def test_a_line_that_is_too_long_is_cut_without_losing_a_letter(text: str, longest: int) -> None:
    reader = Reader([])
    pieces = list(reader._numbered((text[at : at + 1] for at in range(len(text))), longest))
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        of_line = [piece for n, piece in pieces if n == number]
        assert "".join("".join(of_line).split()) == "".join(line.split())
        if all(len(word) <= longest for word in line.split()):
            assert [word for piece in of_line for word in piece.split()] == line.split()
    assert all(len(piece) <= longest for _, piece in pieces)
    if all(len(line) <= longest for line in lines):
        assert reader.cut == 0


def test_blanks_at_the_end_of_a_long_line_end_no_document_but_a_long_blank_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "longest_line", lambda name: 1000)
    blanks = " " * 3000
    (tmp_path / "a").write_text(f"one{blanks}\ntwo\n{blanks}\n{blanks}three\n")
    found = [(line.document[-2:], line.number, line.text.strip()) for line in Reader([tmp_path])]
    assert found == [("/a", 1, "one"), ("/a", 2, "two"), ("#2", 4, "three")]


def test_the_counts_are_those_of_the_latest_reading(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9\n")
    reader = Reader([tmp_path / "a"] * 2)
    for _ in range(2):
        assert len(list(reader)) == 2
        assert (reader.files, reader.replaced, reader.bytes_read, reader.cut) == (2, 2, 10, 0)


ENDLESS = """
import resource, sys
from unbounded.corpus import Reader, Tokenizer
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reader, characters, words = Reader(sys.argv[1:]), 0, 0
tokenizer = Tokenizer()
for line in reader:
    assert len(line.text) <= 1 << 20 and line.number == 1
    characters += len(line.text)
    if reader.cut < 5:
        words += len(tokenizer.words(line.text))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(characters, reader.cut, grown // 1024)
"""


@pytest.mark.parametrize(("unit", "least"), [(b"word and ", 475), (b"x", 500)])
def test_a_line_of_500_megabytes_is_read_in_little_memory(
    tmp_path: Path, unit: bytes, least: int
) -> None:
    path = tmp_path / "long.zst"
    million = (unit * 1_000_000)[: 1_000_000 // len(unit) * len(unit)]
    with open(path, "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
        for _ in range(500):
            packed.write(million)
    run = subprocess.run(
        [sys.executable, "-c", ENDLESS, path], capture_output=True, text=True, check=True
    )
    characters, cut, megabytes = map(int, run.stdout.split())
    assert characters >= least * 999_000
    assert cut >= least * 0.95
    assert megabytes < 60
