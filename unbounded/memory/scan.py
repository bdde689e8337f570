"""From four queries to sixty-four codes at once: the inner loop of every search."""

from typing import Any, no_type_check

import llvmlite.binding
import llvmlite.ir
import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from unbounded.memory.codes import AXES, CENTROID_WORDS, LENGTH, WORDS, shift_of

CHUNK = 64
"""Entries that are stored together: 4,352 bytes.

Word w of sixteen of them lies side by side, so that one instruction multiplies four axes of sixteen
codes.
"""

GROUP = 16

TILE = 4
"""Queries that look at a chunk together: what is taken from memory and unpacked serves them all."""

# Bytes that come from memory together.
_LINE = 64

WIDE = bool(llvmlite.binding.get_host_cpu_features().get("avx512vnni", False))
"""Whether this processor multiplies bytes sixty-four at a time; if not, a plain loop does."""


@no_type_check
def spread(builder, value):
    """One value in all lanes of a vector."""
    ir = llvmlite.ir
    nothing = ir.Constant(ir.VectorType(value.type, GROUP), ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), GROUP), [0] * GROUP)
    return builder.shuffle_vector(one, nothing, lanes)


@intrinsic
@no_type_check
def address(typing, rows, row):
    """Where a row lies. A slice would be counted by everyone who holds it, which takes longer than
    all that is done with it here."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        start = builder.ptrtoint(array.data, llvmlite.ir.IntType(64))
        stride = builder.extract_value(array.strides, 0)
        return builder.add(start, builder.mul(stride, arguments[1]))

    return types.intp(rows, types.intp), generate


@no_type_check
def _fetch(builder, address, line):
    """Ask for a line of memory before it is needed."""
    ir = llvmlite.ir
    byte, word = ir.IntType(8), ir.IntType(32)
    fetch = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [byte.as_pointer(), word, word, word]),
        "llvm.prefetch.p0",
    )
    read, keep, data = (ir.Constant(word, value) for value in (0, 3, 1))
    base = builder.inttoptr(address, byte.as_pointer())
    place = builder.gep(base, [ir.Constant(ir.IntType(64), line * _LINE)])
    builder.call(fetch, [place, read, keep, data])


def _multiplier(words_a_code: int, length: int, halves: bool, queries: int) -> Any:
    """An intrinsic: squared distances of some queries to a chunk of codes, everything by address.

    Word `length` of a code is its squared length; those before it hold four axes, or with `halves`
    eight, four of them in the upper halves of the bytes. Meanwhile it asks for the chunk that
    follows, line by line: all lines at once would have to wait for one another.
    """

    @intrinsic
    @no_type_check
    def multiply(typing, codes, following, asked, offsets, scales, out):
        def generate(context, builder, signature, arguments):
            _write(builder, arguments, words_a_code, length, halves, queries)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 6), generate

    return multiply


@no_type_check
def _write(builder, arguments, words_a_code, length, halves, queries):
    ir = llvmlite.ir
    word, real = ir.IntType(32), ir.FloatType()
    words, reals = ir.VectorType(word, GROUP), ir.VectorType(real, GROUP)
    multiply_add = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(words, [words, words, words]),
        "llvm.x86.avx512.vpdpbusd.512",
    )

    def pointer(address, kind, index):
        base = builder.inttoptr(address, kind.as_pointer())
        return builder.gep(base, [ir.Constant(ir.IntType(64), index)])

    def load(address, kind, index):
        loaded = builder.load(pointer(address, kind, index))
        loaded.align = 1
        return loaded

    def constant(value):
        return ir.Constant(words, [value] * GROUP)

    codes_at, following_at, asked_at, offsets_at, scales_at, out_at = arguments
    low, none = constant(0x0F0F0F0F), ir.Constant(reals, [0.0] * GROUP)
    for group in range(CHUNK // GROUP):
        # Two sums a query, so that one need not wait for the other.
        sums = [[constant(0), constant(0)] for _ in range(queries)]
        for part in range(length):
            _fetch(builder, following_at, group * words_a_code + part)
            packed = load(codes_at, words, group * words_a_code + part)
            if halves:
                upper = builder.and_(builder.lshr(packed, constant(4)), low)
                pairs = [(2 * part, builder.and_(packed, low)), (2 * part + 1, upper)]
            else:
                pairs = [(part, packed)]
            for at, levels in pairs:
                for query in range(queries):
                    asked = load(asked_at, word, query * (AXES // 4) + at)
                    sums[query][at % 2] = builder.call(
                        multiply_add, [sums[query][at % 2], levels, spread(builder, asked)]
                    )
        for line in range(length, words_a_code):
            _fetch(builder, following_at, group * words_a_code + line)
        lengths = load(codes_at, reals, group * words_a_code + length)
        for query in range(queries):
            offset = spread(builder, load(offsets_at, real, query))
            scale = spread(builder, load(scales_at, real, query))
            products = builder.sitofp(builder.add(*sums[query]), reals)
            squared = builder.fsub(builder.fadd(offset, lengths), builder.fmul(scale, products))
            positive = builder.fcmp_ordered(">", squared, none)
            stored = builder.store(
                builder.select(positive, squared, none),
                pointer(out_at, reals, query * (CHUNK // GROUP) + group),
            )
            stored.align = 1


# A tile that is not full is not computed in full: in a large memory few queries share a list.
_one_to_codes, _two_to_codes, _all_to_codes = (
    _multiplier(WORDS, LENGTH, halves=True, queries=queries) for queries in (1, 2, TILE)
)
_all_to_centroids = _multiplier(CENTROID_WORDS, CENTROID_WORDS - 1, halves=False, queries=TILE)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _plainly(chunks, chunk, queries, offsets, scales, many, out, words_a_code, length, halves):
    """What a `_multiplier` does, one product at a time, sixteen codes side by side."""
    codes = chunks[chunk]
    lengths = codes.view(np.float32)
    products = np.empty(GROUP, np.int32)
    axes_a_word, mask = (8, np.uint32(15)) if halves else (4, np.uint32(255))
    for query in range(many):
        for group in range(CHUNK // GROUP):
            first = group * GROUP * words_a_code
            products[:] = 0
            for axis in range(AXES):
                start = first + (axis // axes_a_word) * GROUP
                words = codes[start : start + GROUP]
                shift = np.uint32(shift_of(axis) if halves else 8 * (axis % 4))
                asked = np.int32(queries[query, axis])
                for i in range(GROUP):
                    products[i] += asked * np.int32((words[i] >> shift) & mask)
            for i in range(GROUP):
                squared = (offsets[query] + lengths[first + length * GROUP + i]) - scales[
                    query
                ] * np.float32(products[i])
                out[query, group * GROUP + i] = squared if squared > 0 else np.float32(0)


@numba.njit(cache=True, nogil=True)
@no_type_check
def plain_distances(codes, chunk, following, queries, offsets, scales, many, out):
    """The definition of `distances`."""
    _plainly(codes, chunk, queries, offsets, scales, many, out, WORDS, LENGTH, True)


@numba.njit(cache=True, nogil=True)
@no_type_check
def wide_distances(codes, chunk, following, queries, offsets, scales, many, out):
    """`distances` with wide instructions."""
    codes_at, next_at = address(codes, chunk), address(codes, following)
    queries_at, offsets_at = address(queries, 0), address(offsets, 0)
    scales_at, out_at = address(scales, 0), address(out, 0)
    if many == 1:
        _one_to_codes(codes_at, next_at, queries_at, offsets_at, scales_at, out_at)
    elif many == 2:
        _two_to_codes(codes_at, next_at, queries_at, offsets_at, scales_at, out_at)
    else:
        _all_to_codes(codes_at, next_at, queries_at, offsets_at, scales_at, out_at)


@numba.njit(cache=True, nogil=True)
@no_type_check
def plain_to_centroids(centroids, chunk, queries, offsets, scales, out):
    """The definition of `to_centroids`."""
    words, length = CENTROID_WORDS, CENTROID_WORDS - 1
    _plainly(centroids, chunk, queries, offsets, scales, TILE, out, words, length, False)


@numba.njit(cache=True, nogil=True)
@no_type_check
def wide_to_centroids(centroids, chunk, queries, offsets, scales, out):
    """`to_centroids` with wide instructions."""
    # Behind the last chunk nothing is read: to ask for memory ahead never fails.
    centroids_at, next_at = address(centroids, chunk), address(centroids, chunk + 1)
    queries_at, offsets_at = address(queries, 0), address(offsets, 0)
    scales_at, out_at = address(scales, 0), address(out, 0)
    _all_to_centroids(centroids_at, next_at, queries_at, offsets_at, scales_at, out_at)


distances: Any = wide_distances if WIDE else plain_distances
"""Squared distances of the first `many` queries of a tile, rows of `out`, to a chunk of codes.

The other rows are left as they are, or written over. The chunk `following` is what will be asked
for next, or any chunk: chunks of a list lie anywhere in memory, and to wait for one takes longer
than all that is done with it."""

to_centroids: Any = wide_to_centroids if WIDE else plain_to_centroids
"""The same to a chunk of centroids, for which a query has another offset and scale."""
