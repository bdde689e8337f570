"""What the figures show, in numbers: entropy and perplexity differences taken from results."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.experiments import SCALES
from experiments.results import Found

TRAINED_ON = "news-2007"
"""The figures are of the model trained here, as the paper's are."""

DOMAINS = ("news-2008", "commentary", "web", "wiki", "books")
"""One line each, in the order of table 4."""


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    domain: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def by_neighbors(found: Found) -> list[Curve]:
    """Nats a word that static + cache takes more than static + unigram, against k."""
    return _curves(found, "k ", lambda nats, unigram: nats - unigram)


def by_sharpness(found: Found, shape: str) -> list[Curve]:
    """Relative change of perplexity over static + unigram, against the kernel's sharpness."""
    return _curves(found, f"{shape} ", lambda nats, unigram: math.expm1(nats - unigram))


def all_sharpnesses(found: Found) -> dict[str, float]:
    """The same change for a mixture of every Gaussian at once, by domain."""
    return {
        domain: math.expm1(result["family"] - result["unigram"])
        for domain, result in _drawn(found)
        if "family" in result
    }


def by_words(found: Sequence[Found]) -> list[Curve]:
    """Nats a word that unbounded takes more than unigram, against words read, for figure 2.

    Each point is the mean over the latter half of all words read by then: as wide everywhere on
    a logarithmic axis, and never over words long past. A domain's curve is from the first of
    these results that has it; only those of the best scale count, so that no figure mixes.
    """
    scale = best_scale(found)
    curves: dict[str, Curve] = {}
    for one in found:
        for domain, result in _drawn(one):
            curve = result.get("curve", {})
            if one.scale == scale and {"unigram", "unbounded"} <= curve.keys():
                # What the weights were fitted on was read too, before the first word scored.
                curves.setdefault(domain, _latter_halves(domain, curve, result.get("fitted_on", 0)))
    return [curves[domain] for domain in DOMAINS if domain in curves]


def best_scale(found: Sequence[Found]) -> str:
    """The scale nearest to the paper's that has a result; empty if none has.

    >>> best_scale([Found("a", "paper", {}), Found("b", "small", {("x", "y"): {}})])
    'small'
    """
    return max((one.scale for one in found if one.cells), key=SCALES.index, default="")


def _latter_halves(domain: str, curve: dict[str, list[Any]], start: int) -> Curve:
    bounds, sums = [start], [0.0]
    rows = zip(curve["tokens"], curve["unbounded"], curve["unigram"], strict=True)
    for tokens, unbounded, unigram in rows:
        stretch = start + tokens - bounds[-1]
        sums.append(sums[-1] + stretch * math.log(unbounded / unigram))
        bounds.append(start + tokens)
    means = []
    for end in range(1, len(bounds)):
        begin = min(bisect_left(bounds, bounds[end] / 2), end - 1)
        means.append((sums[end] - sums[begin]) / (bounds[end] - bounds[begin]))
    return Curve(domain, tuple(map(float, bounds[1:])), tuple(means))


def _curves(found: Found, prefix: str, of: Callable[[float, float], float]) -> list[Curve]:
    curves = []
    for domain, result in _drawn(found):
        points = sorted(
            (float(name.removeprefix(prefix)), of(nats, result["unigram"]))
            for name, nats in result.get("lines", {}).items()
            if name.startswith(prefix)
        )
        if points:
            curves.append(Curve(domain, *map(tuple, zip(*points, strict=True))))
    return curves


def _drawn(found: Found) -> Iterator[tuple[str, dict[str, Any]]]:
    for domain in DOMAINS:
        if (TRAINED_ON, domain) in found.cells:
            yield domain, found.cells[TRAINED_ON, domain]
