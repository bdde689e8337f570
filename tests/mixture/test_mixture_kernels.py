"""Native mixtures say what their definitions say, with every instruction set and however cut."""

from itertools import pairwise

import numpy as np
import pytest

from tests.experts import definitions
from unbounded import _native
from unbounded.mixture import Gated, Online

SIZES = [(experts, rows) for experts in (1, 2, 9, 17) for rows in (0, 1, 2, 150)]


def stream(experts: int, rows: int, signals: int = 33) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(rows + experts)
    table = 10.0 ** random.uniform(-9, 0, (rows, experts))
    table[random.random(table.shape) < 0.2] = 0.0
    table[:, -1] = 1e-5
    told = random.normal(size=(rows, signals)) * 10.0 ** random.integers(-9, 9, signals)
    told[random.random(told.shape) < 0.05] = np.nan
    return table, told.astype(np.float32)


@pytest.mark.parametrize(("experts", "rows"), SIZES)
def test_weights_learned_online_are_those_of_the_definition(
    isa: str, experts: int, rows: int
) -> None:
    table, _ = stream(experts, rows)
    mixture = Online(experts)
    state = mixture.state()
    expected = definitions.online(table, state["by_rate"], state["trust"])
    scored = mixture.score(table)
    np.testing.assert_allclose(scored.prob, expected[0], rtol=1e-10)
    np.testing.assert_allclose(scored.weights, expected[1], rtol=1e-10)
    np.testing.assert_allclose(mixture.state()["by_rate"], state["by_rate"], rtol=1e-10)


@pytest.mark.parametrize(("experts", "rows"), SIZES)
def test_a_gate_is_that_of_the_definition(isa: str, experts: int, rows: int) -> None:
    table, told = stream(experts, rows)
    mixture = Gated(experts, groups=[33])
    gate = tuple(each.astype(np.float64) for each in mixture._gate()[:1])
    gate += tuple(each.copy() for each in mixture._gate()[1:4])
    gate += tuple(each.astype(np.float64) for each in mixture._gate()[4:])
    plain = Online(experts).score(table).weights
    expected = definitions.gate(table, told, plain, gate)
    found = _native.mixture_gate(table, told, plain, mixture._gate())
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)  # measured 3e-7
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    for name, each, other in zip(
        ("seen", "moments", "own", "tilt", "squares"), mixture._gate()[1:], gate[1:], strict=True
    ):
        np.testing.assert_allclose(each, other, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("cuts", [[1], [75], [0, 1, 2, 3, 149], list(range(1, 150))])
def test_any_cut_of_a_stream_gives_the_same_bits(isa: str, cuts: list[int]) -> None:
    table, told = stream(9, 150)
    whole = Gated(9, groups=[33]).score(table, told)
    mixture = Gated(9, groups=[33])
    parts = [mixture.score(table[a:b], told[a:b]) for a, b in pairwise([0, *cuts, 150])]
    np.testing.assert_array_equal(np.concatenate([part.prob for part in parts]), whole.prob)
    np.testing.assert_array_equal(np.concatenate([part.weights for part in parts]), whole.weights)


@pytest.mark.parametrize("power", [-200, -900, -1020])
def test_a_word_that_is_next_to_impossible_teaches_as_any_other(isa: str, power: int) -> None:
    table, told = stream(4, 50)
    table[:, :3] += 0.1
    rare = table.copy()
    rare[20:25] *= 2.0**power
    plain, other = Online(4).score(table), Online(4).score(rare)
    np.testing.assert_allclose(other.weights, plain.weights, rtol=1e-9)
    np.testing.assert_allclose(other.prob[20:25], plain.prob[20:25] * 2.0**power, rtol=1e-9)
    gated = Gated(4, groups=[33]).score(rare, told)
    assert np.isfinite(gated.weights).all()
    assert (gated.prob > 0).all()


def test_the_exponential_is_exact_however_far_a_gate_is_tilted(isa: str) -> None:
    mixture = Gated(3, groups=[1])
    tables = mixture._gate()
    moments, tilt = tables[2], tables[4]
    tables[1][0], moments[1] = 1, 1.0
    tilt[:, -1] = np.linspace(-200.0, 0.0, 3)
    told, plain = np.full((1, 1), 4.0, np.float32), np.array([[0.2, 0.3, 0.5]])
    for size in (0.0, 0.01, 0.1, 1.0, 4.0):
        told[:] = size
        odds = plain[0] * np.exp(tilt[:, -1].astype(np.float64) * float(np.float32(size)))
        expected = (1 - 1e-5) * odds / odds.sum() + 1e-5 * plain[0]
        found = _native.mixture_weigh(told, plain, tables)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_arrays_that_do_not_fit_are_refused_in_one_line() -> None:
    table, told = stream(3, 4)
    gate, plain = Gated(3, groups=[33])._gate(), np.full((4, 3), 1 / 3)
    by_rate, trust = np.full((11, 3), 1 / 3), np.full(11, 1 / 11)
    bad = table.copy()
    bad[2, 1] = np.nan
    for changed, complaint in [
        ((bad, by_rate, trust), "probability nan"),
        ((-table, by_rate, trust), "probability -"),
        ((table, by_rate[:, :2].copy(), trust), "as many columns as the table"),
        ((table, by_rate, trust[:10]), "must have 11 rows"),
        ((table.astype(np.float32), by_rate, trust), "table is an array of another type"),
        ((table[:, ::2], by_rate, trust), "table is not contiguous"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            _native.mixture_online(*changed)
    for given, complaint in [
        ((bad, told, plain, gate), "probability nan"),
        ((table, told[:, 1:].copy(), plain, gate), "not those of the gate"),
        ((table[:2], told, plain, gate), "not of the same rows and experts"),
        ((table, told, plain, (*gate[:4], gate[4][:2], gate[5])), "as many experts and signals"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            _native.mixture_gate(*given)
    with pytest.raises(ValueError, match="one row"):
        _native.mixture_weigh(told, plain, gate)
