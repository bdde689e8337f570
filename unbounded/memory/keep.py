"""From many distances to those that are near enough, with what belongs to each."""

from typing import Any, no_type_check

import llvmlite.ir
import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from unbounded.memory.codes import POSITION, WORDS
from unbounded.memory.instructions import (
    GROUP,
    HALF,
    WIDE,
    address,
    constant,
    function,
    load,
    spread,
    store,
)
from unbounded.memory.products import CHUNK

# Where the words of eight that a mask names are, in their order.
_ORDERS = [([lane for lane in range(8) if mask >> lane & 1] + [0] * 8)[:8] for mask in range(256)]


@no_type_check
def _packer(builder, lanes):
    """How to store, one behind the other, those words of a vector that are marked."""
    ir = llvmlite.ir
    words, marks = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(1), lanes)
    if lanes == GROUP:
        name = f"llvm.x86.avx512.mask.compress.v{GROUP}i32"
        compress = function(builder, name, words, words, words, marks)
        nothing = constant(ir.IntType(32), 0)
        return lambda each, belongs: builder.call(compress, [each, nothing, belongs])
    move = function(builder, "llvm.x86.avx2.permd", words, words, words)
    rows = [ir.Constant(words, order) for order in _ORDERS]
    table = ir.Constant(ir.ArrayType(words, len(rows)), rows)
    start = builder.ptrtoint(cgutils.global_constant(builder, "orders", table), ir.IntType(64))

    def pack(each, belongs):
        mask = builder.zext(builder.bitcast(belongs, ir.IntType(lanes)), ir.IntType(64))
        return builder.call(move, [each, load(builder, start, words, mask)])

    return pack


@no_type_check
def _pack(builder, lanes, groups, belonging, places, count):
    """Store what belongs of some groups of words and of their companions; how many that is.

    A whole group is written each time, which is several times as fast as to write no more than
    what belongs: the next group goes over what does not.
    """
    ir = llvmlite.ir
    pack, long = _packer(builder, lanes), ir.IntType(64)
    for (found, companions), belongs in zip(groups, belonging, strict=True):
        for each, at in zip((found, companions), places, strict=True):
            place = builder.add(at, builder.shl(count, ir.Constant(long, 2)))
            store(builder, pack(each, belongs), place, 0)
        mask = builder.bitcast(belongs, ir.IntType(lanes))
        count = builder.add(count, builder.zext(builder.ctpop(mask), long))
    return count


def _keeper(lanes: int) -> Any:
    """An intrinsic: of sixteen words and their companions, by address, those with low <= word <
    high are kept; how many."""

    @intrinsic
    @no_type_check
    def keep(typing, values, companions, low, high, kept_values, kept_companions):
        def generate(context, builder, signature, arguments):
            ir = llvmlite.ir
            words = ir.VectorType(ir.IntType(32), lanes)
            values_at, companions_at, low, high, *places = arguments
            lows, highs = spread(builder, low, lanes), spread(builder, high, lanes)
            # All are read before any is written.
            groups = [
                (load(builder, values_at, words, group), load(builder, companions_at, words, group))
                for group in range(GROUP // lanes)
            ]
            belonging = [
                builder.and_(
                    builder.icmp_unsigned(">=", found, lows),
                    builder.icmp_unsigned("<", found, highs),
                )
                for found, _ in groups
            ]
            nothing = ir.Constant(ir.IntType(64), 0)
            return _pack(builder, lanes, groups, belonging, places, nothing)

        return (
            types.int64(types.intp, types.intp, types.uint32, types.uint32, types.intp, types.intp),
            generate,
        )

    return keep


def _chunk_keeper(lanes: int) -> Any:
    """An intrinsic: of a chunk's first n distances, by address, keep the bits of those below a
    limit, and the positions of their codes; how many."""

    @intrinsic
    @no_type_check
    def keep_chunk(typing, squared, codes, n, limit, bits, positions):
        def generate(context, builder, signature, arguments):
            ir = llvmlite.ir
            word = ir.IntType(32)
            words = ir.VectorType(word, lanes)
            squared_at, codes_at, n, limit, *places = arguments
            limits, ends = (
                spread(builder, limit, lanes),
                spread(builder, builder.trunc(n, word), lanes),
            )
            groups, belonging = [], []
            for first in range(0, CHUNK, lanes):
                group, side = divmod(first, GROUP)
                found = load(builder, squared_at, words, first // lanes)
                place = ((group * WORDS + POSITION) * GROUP + side) // lanes
                groups.append((found, load(builder, codes_at, words, place)))
                numbers = ir.Constant(words, [first + lane for lane in range(lanes)])
                # Distances are not negative, so that their bits may be taken for signed.
                belonging.append(
                    builder.and_(
                        builder.icmp_signed("<", found, limits),
                        builder.icmp_signed("<", numbers, ends),
                    )
                )
            nothing = ir.Constant(ir.IntType(64), 0)
            return _pack(builder, lanes, groups, belonging, places, nothing)

        addresses = (types.intp, types.intp)
        return types.int64(*addresses, types.int64, types.uint32, *addresses), generate

    return keep_chunk


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


def keepers(lanes: int) -> tuple[Any, Any]:
    """`keep` and `keep_chunk`, so many words at once: sixteen (AVX-512) or eight (AVX2)."""
    keep_some, keep_of_chunk = _keeper(lanes), _chunk_keeper(lanes)

    @numba.njit(nogil=True)
    @no_type_check
    def keep(values, companions, n, low, high, kept_values, kept_companions):
        kept = 0
        whole = n - n % GROUP
        for first in range(0, whole, GROUP):
            kept += keep_some(
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

    @numba.njit(nogil=True)
    @no_type_check
    def keep_chunk(squared, row, codes, chunk, n, limit, bits, positions, keeper, count):
        return keep_of_chunk(
            address(squared, row),
            address(codes, chunk),
            n,
            limit,
            address(bits, keeper) + 4 * count,
            address(positions, keeper) + 4 * count,
        )

    return keep, keep_chunk


keep, keep_chunk = (
    keepers(GROUP) if WIDE else keepers(GROUP // 2) if HALF else (plain_keep, plain_keep_chunk)
)
"""`keep` copies the first n words with low <= word < high and their companions; it returns how
many, and may write over all n places.

`keep_chunk` copies the distances in a row, and the positions of a chunk's first n entries, below a
limit. They go to the row of the keeper, from its place `count` on, where there must be room for a
whole chunk; it returns how many.
"""
