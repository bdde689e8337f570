"""What this processor computes many of at once, and words for telling it so."""

from typing import no_type_check

import llvmlite.binding
import llvmlite.ir
from numba.core import cgutils, types
from numba.extending import intrinsic

GROUP = 16
"""Words that lie side by side, so that one instruction takes them all, or two or four do."""

_FEATURES = llvmlite.binding.get_host_cpu_features()

WIDE = bool(_FEATURES.get("avx512vnni", False))
"""Whether it multiplies bytes sixty-four at a time, and packs sixteen words (AVX-512, VNNI)."""

HALF = bool(_FEATURES.get("avx2", False))
"""Whether it multiplies bytes thirty-two at a time, and moves eight words around (AVX2)."""

# Bytes that come from memory together.
_LINE = 64


@no_type_check
def spread(builder, value, lanes=GROUP):
    """One value in all lanes of a vector."""
    ir = llvmlite.ir
    nothing = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, constant(ir.IntType(32), 0, lanes))


@no_type_check
def constant(kind, value, lanes=GROUP):
    """A vector of the same constant."""
    return llvmlite.ir.Constant(llvmlite.ir.VectorType(kind, lanes), [value] * lanes)


@no_type_check
def function(builder, name, result, *arguments):
    """One of the processor's own, by the name that LLVM has for it."""
    kind = llvmlite.ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, name)


@no_type_check
def pointer(builder, address, kind, index):
    """To the value `index` of some that begin at an address."""
    if isinstance(index, int):
        index = llvmlite.ir.Constant(llvmlite.ir.IntType(64), index)
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


@no_type_check
def load(builder, address, kind, index):
    """The value `index` of some that begin at an address, wherever that is."""
    loaded = builder.load(pointer(builder, address, kind, index))
    loaded.align = 1
    return loaded


@no_type_check
def store(builder, value, address, index):
    """Write the value `index` of some that begin at an address, wherever that is."""
    builder.store(value, pointer(builder, address, value.type, index)).align = 1


@no_type_check
def fetch(builder, address, line):
    """Ask for a line of memory before it is needed."""
    ir = llvmlite.ir
    byte, word = ir.IntType(8), ir.IntType(32)
    ask = function(builder, "llvm.prefetch.p0", ir.VoidType(), byte.as_pointer(), word, word, word)
    read, keep, data = (ir.Constant(word, value) for value in (0, 3, 1))
    builder.call(ask, [pointer(builder, address, byte, line * _LINE), read, keep, data])


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
