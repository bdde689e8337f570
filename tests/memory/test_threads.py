import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unbounded.memory import threads
from unbounded.memory.threads import in_parallel, set_search_threads


@pytest.fixture(autouse=True)
def one_thread_afterwards() -> Iterator[None]:
    yield
    set_search_threads(1)


@given(rows=st.integers(0, 300), count=st.integers(1, 5))
@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_parts_make_up_all_rows_once(rows: int, count: int) -> None:
    set_search_threads(count)
    parts: list[tuple[int, int]] = []
    in_parallel(lambda start, stop: parts.append((start, stop)), rows)
    parts.sort()
    assert parts[0][0] == 0
    assert parts[-1][1] == rows
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert len(parts) <= threads._PARTS * count


def test_parts_are_worked_on_at_the_same_time() -> None:
    set_search_threads(3)
    together = threading.Barrier(3, timeout=20)

    def work(start: int, stop: int) -> None:
        together.wait()

    in_parallel(work, 300)


def test_a_part_may_share_out_its_own_rows() -> None:
    set_search_threads(2)
    seen: list[tuple[int, int]] = []

    def work(start: int, stop: int) -> None:
        in_parallel(lambda first, last: seen.append((start + first, start + last)), stop - start)

    in_parallel(work, 1000)
    assert sorted(row for first, last in seen for row in range(first, last)) == list(range(1000))


def test_few_rows_stay_where_they_are() -> None:
    set_search_threads(4)
    where: list[int] = []
    in_parallel(lambda start, stop: where.append(threading.get_ident()), 2)
    assert where == [threading.get_ident()]


@pytest.mark.parametrize("bad", [0, 200])
def test_an_error_in_any_part_is_raised(bad: int) -> None:
    set_search_threads(2)

    def work(start: int, stop: int) -> None:
        if start <= bad < stop:
            raise ValueError(f"row {bad}")

    with pytest.raises(ValueError, match=f"row {bad}"):
        in_parallel(work, 300)


def test_threads_are_set_anew_and_let_go() -> None:
    set_search_threads(3)
    first = threads._pool
    set_search_threads(3)
    assert threads._pool is first
    set_search_threads(1)
    assert threads._pool is None
