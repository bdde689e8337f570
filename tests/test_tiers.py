import pytest

from tests.tiers import ROOT, markers

pytest_plugins = ["pytester"]

BOTH = ["integration", "contended"]


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("contracts/test_expert.py", []),
        ("corpus/test_tokenizer.py", []),
        ("lm/test_training.py", ["integration"]),
        ("torture/test_damage.py", ["integration"]),
        ("memory/test_sharing.py", ["integration"]),
        ("cluster/test_on_ray.py", BOTH),
        ("serve/test_page.py", BOTH),
        ("serve/test_latency.py", BOTH),
        ("serve/test_soak.py", BOTH),
    ],
)
def test_a_test_is_in_the_tier_of_its_folder_and_of_what_it_uses(
    file: str, found: list[str]
) -> None:
    assert markers(ROOT / "tests" / file) == found


def test_what_is_promised_of_memories_and_files_is_not_tried_twice() -> None:
    for folder in ("memory", "store", "torture", "contracts", "datastore", "experts", "mixture"):
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            assert "contended" not in markers(path), path


def test_a_second_run_begins_with_nothing_that_was_shared(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = contended")
    pytester.makeconftest(
        """
        from types import SimpleNamespace
        import pytest
        from tests import tiers
        tiers.time = SimpleNamespace(sleep=lambda seconds: None)

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item, nextitem):
            tiers.run_twice(item, nextitem)
            return True

        def pytest_report_teststatus(report):
            return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None
        """
    )
    pytester.makepyfile(
        """
        import pytest
        made = []

        @pytest.fixture(scope="session")
        def service():
            made.append("up")
            yield made
            made.clear()
            raise RuntimeError("it had ended by itself")

        @pytest.fixture(scope="module")
        def shared(service):
            return {"state": []}

        def test_one(shared):
            shared["state"].append(1)

        first = [True]
        def test_two(shared, service):
            was, first[0] = first[0], False
            shared["state"].append(2)
            assert not was
            assert (shared["state"], service) == ([2], ["up"])

        def test_three(shared):
            assert shared["state"] == [2]

        def test_four():
            assert False
        """
    )
    ran = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-p", "no:jaxtyping")
    outcomes = ran.parseoutcomes()
    # The last one's too is told: what all shared ended with its first run.
    assert (outcomes["passed"], outcomes["rerun"], outcomes["failed"]) == (3, 3, 1)
