"""Products of queries and codes, in the processor's own words: the inner loop of every search.

A code is words of four bits an axis, a centroid of eight; word w of sixteen of them lies side by
side. A query is eight bits an axis, so that a sum of products is exact, and the same in any order
and on any processor.
"""

from contextlib import contextmanager
from itertools import chain
from typing import Any, no_type_check

import llvmlite.ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from unbounded.memory.codes import AXES
from unbounded.memory.instructions import GROUP, constant, fetch, function, load, spread, store

CHUNK = 64
"""Entries that are stored together: 4,352 bytes."""

_EIGHT = GROUP // 2

# How often short sums are added to long ones: each time they are sums of twelve products of four
# bits and eight, at most 22,860.
_FOLDS = 5


def multiplier(way: str, words_a_code: int, length: int, halves: bool, queries: int) -> Any:
    """An intrinsic: squared distances of some queries to a chunk of codes, everything by address.

    Word `length` of a code is its squared length; those before it hold four axes, or with `halves`
    eight, four of them in the upper halves of the bytes. Meanwhile it asks for the chunk that
    follows, line by line: all lines at once would have to wait for one another.

    There are three ways: `wide` takes sixteen words at once (AVX-512), `half` eight (AVX2), and
    `any` says it in words that every processor understands.
    """
    write = _write_wide if way == "wide" else _write_half

    @intrinsic
    @no_type_check
    def multiply(typing, codes, following, asked, offsets, scales, out):
        def generate(context, builder, signature, arguments):
            write(builder, arguments, words_a_code, length, halves, queries, way)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 6), generate

    return multiply


@no_type_check
def _write_wide(builder, arguments, words_a_code, length, halves, queries, way):
    """Four products of bytes are added to each of sixteen sums by one instruction."""
    word, real = llvmlite.ir.IntType(32), llvmlite.ir.FloatType()
    words, reals = (llvmlite.ir.VectorType(kind, GROUP) for kind in (word, real))
    multiply_add = function(builder, "llvm.x86.avx512.vpdpbusd.512", words, words, words, words)
    codes_at, following_at, asked_at, offsets_at, scales_at, out_at = arguments
    low = constant(word, 0x0F0F0F0F)
    for group in range(CHUNK // GROUP):
        first = group * words_a_code
        # Two sums a query, so that one need not wait for the other.
        sums = [[constant(word, 0)] * 2 for _ in range(queries)]
        for part in range(length):
            fetch(builder, following_at, first + part)
            packed = load(builder, codes_at, words, first + part)
            if halves:
                upper = builder.and_(builder.lshr(packed, constant(word, 4)), low)
                pairs = [(2 * part, builder.and_(packed, low)), (2 * part + 1, upper)]
            else:
                pairs = [(part, packed)]
            for at, levels in pairs:
                for query in range(queries):
                    asked = load(builder, asked_at, word, query * (AXES // 4) + at)
                    sums[query][at % 2] = builder.call(
                        multiply_add, [sums[query][at % 2], levels, spread(builder, asked)]
                    )
        for line in range(length, words_a_code):
            fetch(builder, following_at, first + line)
        lengths = load(builder, codes_at, reals, first + length)
        for query in range(queries):
            products = builder.add(*sums[query])
            squared = _squared(builder, products, lengths, offsets_at, scales_at, query)
            store(builder, squared, out_at, query * (CHUNK // GROUP) + group)


@no_type_check
def _write_half(builder, arguments, words_a_code, length, halves, queries, way):
    """Two products of bytes are added up in each of sixteen short sums, and now and then these are
    added to eight long ones. A byte of eight bits is taken as two of four, or a short sum of two
    products would overflow."""
    ir = llvmlite.ir
    word = ir.IntType(32)
    eight, reals = (ir.VectorType(kind, _EIGHT) for kind in (word, ir.FloatType()))
    low, four = constant(word, 0x0F0F0F0F, _EIGHT), constant(word, 4, _EIGHT)
    multiply, fold = _multiply, _fold
    if way == "half":
        multiply, fold = _multiply_by_instruction, _fold_by_instruction
    codes_at, following_at, asked_at, offsets_at, scales_at, out_at = arguments
    # Eight bits are taken in two goes: there are registers for the sums of one.
    goes = [(0, 1)] if halves else [(0,), (1,)]
    stretch = length // _FOLDS
    with _times(builder, CHUNK // GROUP) as group:
        codes_at = _behind(builder, codes_at, group, 4 * GROUP * words_a_code)
        following_at = _behind(builder, following_at, group, 4 * GROUP * words_a_code)
        sums = [[cgutils.alloca_once(builder, eight) for _ in range(2)] for _ in range(queries)]
        for each in chain.from_iterable(sums):
            builder.store(constant(word, 0, _EIGHT), each)
        for go in goes:
            # Loops, and not all of it written out: else what is needed again later is kept, for
            # which there are no registers.
            with _times(builder, _FOLDS) as fold_number:
                some_at = _behind(builder, codes_at, fold_number, 4 * GROUP * stretch)
                ahead_at = _behind(builder, following_at, fold_number, 4 * GROUP * stretch)
                axes_at = _behind(builder, asked_at, fold_number, 4 * stretch * len(go))
                shorts = [[None] * 2 for _ in range(queries)]
                for part in range(stretch):
                    if 0 in go:
                        fetch(builder, ahead_at, part)
                    packed = [load(builder, some_at, eight, 2 * part + side) for side in range(2)]
                    for upper in go:
                        if upper:
                            packed = [builder.lshr(each, four) for each in packed]
                        levels = [builder.and_(each, low) for each in packed]
                        for query in range(queries):
                            axes = query * (AXES // 4) + part * len(go) + upper * (len(go) - 1)
                            asked = spread(builder, load(builder, axes_at, word, axes), _EIGHT)
                            for side in range(2):
                                product = multiply(builder, levels[side], asked)
                                so_far = shorts[query][side]
                                shorts[query][side] = (
                                    product if so_far is None else builder.add(so_far, product)
                                )
                for query in range(queries):
                    for side in range(2):
                        folded = fold(builder, shorts[query][side], 16 if go == (1,) else 1)
                        total = builder.add(builder.load(sums[query][side]), folded)
                        builder.store(total, sums[query][side])
        for line in range(length, words_a_code):
            fetch(builder, following_at, line)
        for side in range(2):
            lengths = load(builder, codes_at, reals, 2 * length + side)
            for query in range(queries):
                products = builder.load(sums[query][side])
                squared = _squared(builder, products, lengths, offsets_at, scales_at, query)
                row = _behind(builder, out_at, group, 4 * GROUP)
                store(builder, squared, row, query * (CHUNK // _EIGHT) + side)


@no_type_check
@contextmanager
def _times(builder, count):
    """Write a loop that runs so often; the number of each run."""
    long = llvmlite.ir.IntType(64)
    with cgutils.for_range(builder, llvmlite.ir.Constant(long, count), intp=long) as loop:
        yield loop.index


@no_type_check
def _behind(builder, address, number, bytes_):
    """The address `number` times so many bytes further on."""
    step = llvmlite.ir.Constant(llvmlite.ir.IntType(64), bytes_)
    return builder.add(address, builder.mul(number, step))


@no_type_check
def _squared(builder, products, lengths, offsets_at, scales_at, query):
    """offset + length − scale · products, and nothing below zero."""
    real, lanes = llvmlite.ir.FloatType(), lengths.type.count
    none = constant(real, 0.0, lanes)
    offset = spread(builder, load(builder, offsets_at, real, query), lanes)
    scale = spread(builder, load(builder, scales_at, real, query), lanes)
    products = builder.sitofp(products, lengths.type)
    squared = builder.fsub(builder.fadd(offset, lengths), builder.fmul(scale, products))
    return builder.select(builder.fcmp_ordered(">", squared, none), squared, none)


@no_type_check
def _shorts():
    return llvmlite.ir.VectorType(llvmlite.ir.IntType(16), GROUP)


@no_type_check
def _multiply_by_instruction(builder, levels, asked):
    """Products of bytes, each two of a pair added up."""
    bytes_ = llvmlite.ir.VectorType(llvmlite.ir.IntType(8), 2 * GROUP)
    name = "llvm.x86.avx2.pmadd.ub.sw"
    pairs = [builder.bitcast(each, bytes_) for each in (levels, asked)]
    return builder.call(function(builder, name, _shorts(), bytes_, bytes_), pairs)


@no_type_check
def _multiply(builder, levels, asked):
    """The same in words for any processor."""
    eight = constant(llvmlite.ir.IntType(16), 8)
    levels, asked = (builder.bitcast(each, _shorts()) for each in (levels, asked))
    first = builder.mul(
        builder.and_(levels, constant(llvmlite.ir.IntType(16), 255)),
        builder.ashr(builder.shl(asked, eight), eight),
    )
    return builder.add(first, builder.mul(builder.lshr(levels, eight), builder.ashr(asked, eight)))


@no_type_check
def _fold_by_instruction(builder, shorts, weight):
    """Two short sums to each long one, times a weight."""
    words = llvmlite.ir.VectorType(llvmlite.ir.IntType(32), _EIGHT)
    add = function(builder, "llvm.x86.avx2.pmadd.wd", words, _shorts(), _shorts())
    return builder.call(add, [shorts, constant(llvmlite.ir.IntType(16), weight)])


@no_type_check
def _fold(builder, shorts, weight):
    """The same in words for any processor."""
    word = llvmlite.ir.IntType(32)
    both, sixteen = (
        builder.bitcast(shorts, llvmlite.ir.VectorType(word, _EIGHT)),
        constant(word, 16, _EIGHT),
    )
    first = builder.ashr(builder.shl(both, sixteen), sixteen)
    added = builder.add(first, builder.ashr(both, sixteen))
    return builder.mul(added, constant(word, weight, _EIGHT))
