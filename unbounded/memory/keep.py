"""From many distances to those that are near enough, with what belongs to each."""

from typing import Any, no_type_check

import llvmlite.ir
import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from unbounded.memory.codes import POSITION, WORDS
from unbounded.memory.scan import CHUNK, GROUP, WIDE, address, spread


@intrinsic
@no_type_check
def _keep(typing, values, companions, low, high, kept_values, kept_companions):
    """Sixteen words and their companions, by address: keep those with low <= word < high."""

    def generate(context, builder, signature, arguments):
        ir = llvmlite.ir
        word, bit = ir.IntType(32), ir.IntType(1)
        words, bits = ir.VectorType(word, GROUP), ir.VectorType(bit, GROUP)
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [words, word.as_pointer(), bits]),
            f"llvm.masked.compressstore.v{GROUP}i32",
        )
        values_at, companions_at, low, high, kept_values_at, kept_companions_at = arguments

        def load(address):
            loaded = builder.load(builder.inttoptr(address, words.as_pointer()))
            loaded.align = 4
            return loaded

        found = load(values_at)
        belongs = builder.and_(
            builder.icmp_unsigned(">=", found, spread(builder, low)),
            builder.icmp_unsigned("<", found, spread(builder, high)),
        )
        for each, to in ((found, kept_values_at), (load(companions_at), kept_companions_at)):
            builder.call(compress, [each, builder.inttoptr(to, word.as_pointer()), belongs])
        mask = builder.bitcast(belongs, ir.IntType(GROUP))
        return builder.zext(builder.ctpop(mask), ir.IntType(64))

    return (
        types.int64(types.intp, types.intp, types.uint32, types.uint32, types.intp, types.intp),
        generate,
    )


@intrinsic
@no_type_check
def _keep_chunk(typing, squared, codes, n, limit, bits, positions):
    """Of a chunk's first n distances, by address: keep the bits of those below a limit.

    And the positions of their codes. Up to sixteen words are written past the last that is kept,
    which is several times as fast as to write no more than these.
    """

    def generate(context, builder, signature, arguments):
        ir = llvmlite.ir
        word, bit, long = ir.IntType(32), ir.IntType(1), ir.IntType(64)
        words, marks = ir.VectorType(word, GROUP), ir.VectorType(bit, GROUP)
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(words, [words, words, marks]),
            f"llvm.x86.avx512.mask.compress.v{GROUP}i32",
        )
        squared_at, codes_at, n, limit, bits_at, positions_at = arguments

        def vector(address, place):
            base = builder.inttoptr(address, word.as_pointer())
            return builder.bitcast(builder.gep(base, [place]), words.as_pointer())

        def load(address, place):
            loaded = builder.load(vector(address, ir.Constant(long, place)))
            loaded.align = 4
            return loaded

        limits, ends = spread(builder, limit), spread(builder, builder.trunc(n, word))
        count = ir.Constant(long, 0)
        for group in range(CHUNK // GROUP):
            found = load(squared_at, group * GROUP)
            position = load(codes_at, (group * WORDS + POSITION) * GROUP)
            lanes = ir.Constant(words, [group * GROUP + lane for lane in range(GROUP)])
            belongs = builder.and_(
                builder.icmp_unsigned("<", found, limits), builder.icmp_signed("<", lanes, ends)
            )
            for each, to in ((found, bits_at), (position, positions_at)):
                packed = builder.call(compress, [each, ir.Constant(words, [0] * GROUP), belongs])
                builder.store(packed, vector(to, count)).align = 4
            mask = builder.bitcast(belongs, ir.IntType(GROUP))
            count = builder.add(count, builder.zext(builder.ctpop(mask), long))
        return count

    addresses = (types.intp, types.intp)
    return types.int64(*addresses, types.int64, types.uint32, *addresses), generate


@numba.njit(cache=True, nogil=True)
@no_type_check
def plain_keep(values, companions, n, low, high, kept_values, kept_companions):
    """The definition of `keep`."""
    kept = 0
    for i in range(n):
        if low <= values[i] < high:
            kept_values[kept] = values[i]
            kept_companions[kept] = companions[i]
            kept += 1
    return kept


@numba.njit(cache=True, nogil=True)
@no_type_check
def wide_keep(values, companions, n, low, high, kept_values, kept_companions):
    """`keep` with wide instructions."""
    kept = 0
    whole = n - n % GROUP
    for first in range(0, whole, GROUP):
        kept += _keep(
            values.ctypes.data + 4 * first,
            companions.ctypes.data + 4 * first,
            low,
            high,
            kept_values.ctypes.data + 4 * kept,
            kept_companions.ctypes.data + 4 * kept,
        )
    return kept + plain_keep(
        values[whole:],
        companions[whole:],
        n - whole,
        low,
        high,
        kept_values[kept:],
        kept_companions[kept:],
    )


keep: Any = wide_keep if WIDE else plain_keep
"""Copies the first n words with low <= word < high and their companions; returns how many."""


@numba.njit(cache=True, nogil=True)
@no_type_check
def plain_keep_chunk(squared, row, codes, chunk, n, limit, bits, positions, keeper, count):
    """The definition of `keep_chunk`."""
    found = squared.view(np.uint32)[row]
    before = count
    for slot in range(min(n, CHUNK)):
        if found[slot] < limit:
            bits[keeper, count] = found[slot]
            group, lane = slot // GROUP, slot % GROUP
            positions[keeper, count] = codes[chunk, (group * WORDS + POSITION) * GROUP + lane]
            count += 1
    return count - before


@numba.njit(cache=True, nogil=True)
@no_type_check
def wide_keep_chunk(squared, row, codes, chunk, n, limit, bits, positions, keeper, count):
    """`keep_chunk` with wide instructions."""
    return _keep_chunk(
        address(squared, row),
        address(codes, chunk),
        n,
        limit,
        address(bits, keeper) + 4 * count,
        address(positions, keeper) + 4 * count,
    )


keep_chunk: Any = wide_keep_chunk if WIDE else plain_keep_chunk
"""Copies the distances in a row, and the positions of a chunk's first n entries, below a limit.

They go to the row of the keeper, from its place `count` on, where there must be room for a whole
chunk; returns how many.
"""
