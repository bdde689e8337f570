"""Text taken out of files of many kinds; what is not text is refused, in one line, everywhere."""

import builtins
import gzip
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from unbounded.corpus import Reader, lines_of
from unbounded.corpus.formats import why_not_text
from unbounded.errors import CorpusError, MissingExtra


def read(path: Path, text: str, field: str | None = None) -> list[tuple[int, str]]:
    path.write_text(text, encoding="utf-8")
    return [(line.number, line.text) for line in Reader(path, field=field)]


def test_html_gives_its_text_a_paragraph_a_line(tmp_path: Path) -> None:
    page = """<!doctype html><html><head><title>Notes &amp; more</title>
<style>p { color: red }</style></head><body>
<p>The <b>zor</b>ble ate
   the <a href="x">grass</a>.</p><script>let x = "<p>no</p>"</script>
<ul><li>one<li>two &lt;3</ul> tail"""
    wanted = [(1, "Notes & more"), (3, "The zorble ate the grass."), (5, "one"), (5, "two <3")]
    assert read(tmp_path / "a.HTML", page) == [*wanted, (5, "tail")]
    (tmp_path / "b.htm.gz").write_bytes(gzip.compress(b"<p>packed"))
    assert [line.text for line in Reader(tmp_path / "b.htm.gz")] == ["packed"]


def test_of_json_lines_a_field_is_read(tmp_path: Path) -> None:
    text = '{"text": "it rains", "by": "Ann"}\n\n{"text": "two\\nlines", "by": "Bob"}\n'
    path = tmp_path / "a.jsonl"
    assert read(path, text) == [(1, "it rains"), (3, "two"), (3, "lines")]
    assert read(path, text, "by") == [(1, "Ann"), (3, "Bob")]
    long = "word " * 500_000
    assert len(read(path, f'{{"text": "{long}"}}')[0][1].split()) == 500_000
    with pytest.raises(CorpusError, match="has no field 'body' but text, by; give one of them"):
        read(path, text, "body")
    with pytest.raises(CorpusError, match=r"line 1 of .* is not JSON"):
        read(path, "{text}")
    with pytest.raises(CorpusError, match="has no text but int"):
        read(path, '{"n": 1}', "n")
    with pytest.raises(CorpusError, match="is not JSON"):
        read(path, "[" * 100_000)


def test_of_a_table_a_column_is_read(tmp_path: Path) -> None:
    table = 'id,body\n1,"hello, table"\n2,"a\nb"\n3\n4,last\n'
    path = tmp_path / "a.csv"
    assert read(path, table, "body") == [(2, "hello, table"), (3, "a"), (3, "b"), (6, "last")]
    assert read(tmp_path / "a.tsv", "text\tby\nit rains\tAnn\n") == [(2, "it rains")]
    assert read(path, "only\none\ntwo\n") == [(2, "one"), (3, "two")]
    with pytest.raises(CorpusError, match="has no field 'text' but id, body"):
        read(path, table)


def test_a_folder_says_which_kinds_it_left_out_and_how_to_include_them(tmp_path: Path) -> None:
    for name in ("a.py", "b.org", "c.tex", "d.csv", "e.json", "f.jpg", "g.jpg", "h.rs", "i.html"):
        (tmp_path / name).write_text("text\nx")
    reader = Reader(tmp_path)
    assert [line.document[-4:] for line in reader][::2] == ["a.py", ".org", ".tex", "h.rs", "html"]
    assert reader.left_out == {".csv": 1, ".json": 1, ".jpg": 2}
    assert "d.csv" in str([line.document for line in Reader(tmp_path, field="text")])
    only = tmp_path / "only"
    only.mkdir()
    (only / "x.jpg").touch()
    with pytest.raises(CorpusError, match=r"1 \.jpg \(to read one as plain text, name it\)"):
        list(Reader(only))


def test_pdf_needs_an_extra_and_gives_the_text_of_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.4")
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "pypdf":
            raise ModuleNotFoundError(name="pypdf")
        return real(name, *more)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        with pytest.raises(MissingExtra, match=r"pip install 'unbounded\[pdf\]'"):
            list(Reader(path))
    fake = ModuleType("pypdf")
    pages = [SimpleNamespace(extract_text=lambda: "one\n \ntwo"), SimpleNamespace()]
    fake.PdfReader = lambda file: SimpleNamespace(pages=pages[: len(file.read()) - 7])  # type: ignore[attr-defined]
    fake.errors = SimpleNamespace(PyPdfError=AttributeError)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pypdf", fake)
    assert [(line.number, line.text) for line in Reader(path)] == [(1, "one"), (1, "two")]
    path.write_bytes(b"%PDF-1.4.")
    with pytest.raises(CorpusError, match="is a PDF file that cannot be read"):
        list(Reader(path))


def test_a_pdf_of_a_real_writer_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    content = b"BT /F1 12 Tf 72 720 Td (The zorble ate the grass.) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\n" % table
    path = tmp_path / "a.pdf"
    path.write_bytes(data + end + b"startxref\n%d\n%%%%EOF\n" % len(data))
    assert [line.text for line in Reader(path)] == ["The zorble ate the grass."]


JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(range(256)) * 4
OTHERS = [b"\x89PNG\r\n\x1a\n\x01", b"GIF89a\x01\x02", b"PK\x03\x04\x14", b"%PDF-1.7\nplain"]


@pytest.mark.parametrize("data", [JPEG, *OTHERS, bytes(range(1, 256)) * 4])
def test_what_is_not_text_is_refused_however_its_bytes_were_decoded(
    tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CorpusError, match="a is not text"):
        list(Reader(tmp_path / "a"))
    # As a page or a client would send it, with NUL bytes replaced before.
    text = data.decode("utf-8", "replace").replace("\0", "\ufffd")
    assert why_not_text(text) is not None
    with pytest.raises(CorpusError, match="'a' is not text"):
        lines_of(text, "a", 1)


def test_text_about_such_files_is_text() -> None:
    for text in ("GIF89a is a format.", "PK is a country", "naïve café \ufffd", "", "\x1b[1mbold"):
        assert why_not_text(text) is None
