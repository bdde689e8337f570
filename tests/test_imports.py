"""Reading and asking load nothing that only training, other indexes or clusters need."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

import unbounded
from tests.lm.test_training import cycle, run
from unbounded.errors import MissingExtra

DEAR = ("torch", "faiss", "numba", "llvmlite", "transformers", "ray", "jaxtyping", "matplotlib")

# A machine that has none of them: whoever asks for one is told that it is not there.
WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in set({absent!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def python(code: str, absent: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    whole = WITHOUT.format(absent=absent) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", whole], env=dict(os.environ), capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    run(folder, cycle(1_500))
    return folder


VERBS = """
    from pathlib import Path
    import unbounded
    memory = unbounded.open(Path({folder!r}) / "notes", model={model!r})
    memory.read("the zorble ate the grass .", document="first")
    memory.score("the zorble slept .")
    memory.predict("the zorble")
    memory.complete("the zorble")
    memory.close()
    assert unbounded.load({model!r}).speller.vectors(["zorble"]).any()
"""


def test_reading_and_asking_load_nothing_dear(model: Path, tmp_path: Path) -> None:
    code = VERBS.format(model=str(model), folder=str(tmp_path))
    found = python(f"{code}\n    print(*set({DEAR!r}) & set(sys.modules))")
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == []


def test_reading_and_asking_need_neither_torch_nor_faiss(model: Path, tmp_path: Path) -> None:
    found = python(VERBS.format(model=str(model), folder=str(tmp_path)), DEAR)
    assert found.returncode == 0, found.stderr


def refused(calls: Iterable[str], absent: tuple[str, ...] = ()) -> list[str]:
    """What each raises, one after the other in one process: the error's name and what it says."""
    tried = "".join(
        f"try:\n    {call}\nexcept Exception as error:\n"
        "    print(type(error).__name__, repr(str(error)))\n"
        for call in calls
    )
    return python(f"import unbounded\n{tried}", absent).stdout.splitlines()


def test_what_is_missing_is_named_in_one_line_with_what_installs_it() -> None:
    needed = {
        "from unbounded.lm import train_model": "train",
        "unbounded.train": "train",
        "from unbounded.lm import DynamicModel": "train",
        "from unbounded.lm import TransformerModel": "train",
        "from unbounded.datastore import IVFPQ; IVFPQ(64)": "faiss",
    }
    for said, extra in zip(refused(needed, ("torch", "faiss")), needed.values(), strict=True):
        assert said.startswith(MissingExtra.__name__)
        assert f"pip install 'unbounded[{extra}]'" in said


def test_the_public_names_are_these_and_all_are_there() -> None:
    assert set(unbounded.__all__) == {
        *("__version__", "load", "load_model", "open", "train", "evaluate", "backup", "restore"),
        *("Memory", "Budget", "MemoryConfig", "build_online", "EvaluationConfig"),
        *("Reader", "Tokenizer", "Pretokenized", "NetworkConfig", "TrainingConfig"),
        *("from_transformers", "TransformerConfig", "Writer", "UnboundedError", "CorpusError"),
        *("EngineError", "MemoryFault", "MissingExtra", "ModelError", "SettingError"),
        *("StoreError", "TrainingError"),
    }
    assert dir(unbounded) == sorted(unbounded.__all__)
    assert all(getattr(unbounded, name) is not None for name in unbounded.__all__)
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = unbounded.magic


def test_a_wrong_type_is_one_line_that_names_the_right_one() -> None:
    right = {
        "unbounded.load(3)": "str or Path",
        "unbounded.Reader([3])": "str or Path",
        "unbounded.train(3, 'out')": "a path, a list of paths, a Reader, or lines",
        "unbounded.train('a.txt', 3)": "str or Path",
        "unbounded.evaluate(3, 'a.txt')": "str or Path",
    }
    # In a process of its own, where nothing checks the types before we do.
    for said, asked in zip(refused(right), right.values(), strict=True):
        assert said.startswith(("SettingError ", "ModelError "))
        assert asked in said
        assert "\\n" not in said


def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the zorble ate the grass\n" * 100)
    code = f"""
    sys.argv = ["unbounded", "train", {str(text)!r}, "--out", {str(tmp_path / "model")!r}]
    from unbounded.cli import main
    main()
    """
    found = python(code, ("torch",))
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert "pip install 'unbounded[train]'" in found.stderr


def test_help_loads_neither_numpy_nor_the_model() -> None:
    code = """
    sys.argv = ["unbounded", "--help"]
    from unbounded.cli import main
    try:
        main()
    except SystemExit:
        pass
    print("loaded", *{"numpy", "unbounded.lm", "unbounded._native"} & set(sys.modules))
    """
    found = python(code)
    assert found.stdout.splitlines()[-1].split() == ["loaded"], found.stderr
