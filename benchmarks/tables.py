"""The figures for people."""

from collections.abc import Mapping
from typing import Any

from unbounded.evaluation.rows import TITLES

_MEGA = 1_000_000


def read_table(mark: int, figures: Mapping[str, Any]) -> str:
    """What reading costs at one mark."""
    perplexity, paper = figures["perplexity"], figures["paper_ratio"]
    lines = [
        f"{mark:,} entries, measured on the last {figures['stretch']:,} words",
        f"{'':28}{'µs/word':>9}{'to static':>11}{'paper':>12}{'perplexity':>12}",
    ]
    for name in ("static", "local", "unbounded", "full"):
        us = figures[f"{name}_us"]
        said = "{:.1f} to {:.1f}".format(*paper[name]) if name in paper else ""
        lines.append(
            f"{TITLES[name]:28}{us:>9,.1f}{us / figures['static_us']:>11.2f}{said:>12}"
            f"{perplexity[name]:>12,.2f}"
        )
    torch_static, plain = figures["torch_static_us"], figures["plain_cache_us"]
    ratios = ", ".join(f"{name} {r:.2f}" for name, r in figures["to_torch_static"].items())
    lines += [
        f"{'static in plain PyTorch':28}{torch_static:>9,.1f}  to it: {ratios}",
        f"{'plain neural cache':28}{plain:>9,.1f}{plain / figures['static_us']:>11.2f}",
        f"{'unbounded, whole stream':28}{figures['stream_us']:>9,.1f}"
        f"{figures['stream_ratio']:>11.2f}",
        f"{'search alone':28}{figures['search_us']:>9,.1f}"
        f"  {figures['queries_per_second']:,.0f} a second, "
        f"{figures['search_ratio']:.1f} times stock, {figures['k']:,} neighbors",
        f"{'search alone, stock faiss':28}{figures['stock_search_us']:>9,.1f}"
        f"  {figures['stock_queries_per_second']:,.0f} a second, {figures['stock_k']:,} neighbors",
        *(
            f"  {one['name']:38}{one['us']:>9,.1f} µs  perplexity {one['perplexity']:,.2f}, "
            f"filling {one['filling_us']:.1f} µs an entry"
            for one in figures["contest"]
        ),
        f"  ours on these words{figures['search_us']:>28,.1f} µs  perplexity "
        f"{figures['contest_perplexity']:,.2f}",
        f"best of faiss: {figures.get('best_faiss', 'none')}, "
        f"{figures.get('best_faiss_us', float('nan')) / figures['search_us']:.1f} times our time",
        "perplexity with nothing of the stretch in the memory, weights fitted: "
        f"{perplexity['unbounded_frozen']:,.2f}, with as many neighbors as stock "
        f"{perplexity['as_many_frozen']:,.2f}, stock faiss {perplexity['stock']:,.2f}, "
        f"kNN-LM {perplexity['knn_lm']:,.2f}",
        f"one prediction: median {figures['predict_us']['median']:,.0f} µs, "
        f"99th percentile {figures['predict_us']['p99']:,.0f} µs; "
        f"longest stall {figures['longest_stall_s']:.2f} s",
        f"memory: {figures['bytes_per_entry']:,.0f} bytes an entry; peak RSS "
        f"{figures['peak_rss'] / _MEGA:,.0f} MB, "
        f"{figures['peak_rss_beyond_model'] / _MEGA:,.0f} MB beyond the model",
    ]
    return "\n".join(lines)


def search_table(mark: int, figures: Mapping[str, Any]) -> str:
    """How the indexes compare at one mark."""
    lines = [
        f"{mark:,} entries",
        f"{'':8}{'queries/s':>11}{'to stock':>10}{'recall':>8}{'filled':>8}"
        f"{'bytes':>8}{'adds/s':>11}",
    ]
    lines += [
        f"{name:8}{row['queries_per_second']:>11,.0f}{row['ratio']:>10.2f}{row['recall']:>8.3f}"
        f"{row['filled']:>8.3f}{row['bytes_per_entry']:>8,.0f}{row['adds_per_second']:>11,.0f}"
        for name, row in figures.items()
    ]
    return "\n".join(lines)


def serve_table(figures: Mapping[str, Any]) -> str:
    """What the service does beside the library."""
    taken = figures["library_words_per_second"]["taken"]
    lines = [
        f"{figures['users']} users, {figures['memories']} memories, {figures['threads']} threads, "
        f"{figures['seconds']:.0f} s, killed half-way",
        f"library  {taken:>9,.0f} words/s",
        f"service  {figures['words_per_second']:>9,.0f} words/s  {figures['ratio']:.2f} of it",
        f"{'ms':9}{'count':>9}{'p50':>9}{'p90':>9}{'p99':>9}{'max':>9}{'library p50':>13}",
    ]
    for verb, took in figures["latency_ms"].items():
        cells = "".join(f"{took[name]:>9,.0f}" for name in ("count", "p50", "p90", "p99", "max"))
        lines.append(f"{verb:9}{cells}{figures['library_latency_ms'][verb]['p50']:>13,.0f}")
    lines.append(
        f"{figures['acknowledged']:,} reads acknowledged, {figures['lost']} lost; "
        f"{figures['strange']} words of others seen; {figures['interrupted']} calls cut off, "
        f"{figures['refused']} told to come again; ready {figures['restart_seconds']:.1f} s after "
        f"kill -9, stopped in {figures['stop_seconds']:.1f} s"
    )
    return "\n".join(lines)
