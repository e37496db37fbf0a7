"""Products of bytes, four per lane, with this processor's instructions; float32 that rounds as written.

The compiler may reassociate in loops, but not across a fence, so quantised numbers have the same bits as in any
other program.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.kernels.vector.vector_moves import INTEGERS, LANES, constant, number
from byhand.runtimes.loops.machine.native import X86, cgutils, instruction
from byhand.runtimes.loops.machine.processor import cpu_features

_HAS = cpu_features()
HALVES = bool({"f16c", "avx512f", "neon"} & {*_HAS})  # the processor has float16 instructions
SCALE = ir.HalfType() if HALVES else ir.FloatType()  # of a block
SCALE_WORDS = LANES // 2 if HALVES else LANES  # of the scales of all lanes
_PAIRS = ir.VectorType(ir.IntType(16), 2 * LANES)
_PRODUCT = (  # of bytes, in one instruction
    {16: "512", 8: "256"}.get(LANES, "") if {"avx512vnni", "avxvnni"} & {*_HAS} else ""
)
_OF_PAIRS = {16: "avx512.pmaddw.d.512" if "avx512bw" in _HAS else "", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}[LANES]


def _call(builder: Any, name: str, kind: Any, *arguments: Any) -> Any:
    signature = ir.FunctionType(INTEGERS, [kind(a) for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, f"llvm.x86.{name}"), arguments)


def add_products(builder: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    """Return sums plus, in each lane, the products of four unsigned bytes with four signed ones."""
    if X86 and _PRODUCT:
        return _call(builder, f"avx512.vpdpbusd.{_PRODUCT}", lambda a: a.type, sums, unsigned, signed)
    for odd in (0, 1):
        left = builder.and_(builder.lshr(unsigned, constant(8 * odd)), constant(0x00FF00FF))
        right = signed if odd else builder.shl(signed, constant(8))
        left, right = (builder.bitcast(x, _PAIRS) for x in (left, right))
        right = builder.ashr(right, ir.Constant(_PAIRS, [8] * 2 * LANES))
        if X86 and _OF_PAIRS:
            product = _call(builder, _OF_PAIRS, lambda a: a.type, left, right)
        else:
            left, right = (builder.bitcast(x, INTEGERS) for x in (left, right))
            parts = [(builder.shl(left, constant(16)), builder.shl(right, constant(16))), (left, right)]
            products = [builder.mul(*(builder.ashr(x, constant(16)) for x in pair)) for pair in parts]
            product = builder.add(*products)
        sums = builder.add(sums, product)
    return sums


def _fenced(builder: Any, x: Any) -> Any:
    """Return x, behind a fence against reassociation and contraction."""
    kind = ir.FunctionType(x.type, [x.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.arithmetic.fence.f32"), [x])


@instruction("float32", "float32", "float32")
def quotient(builder, x, y):
    """Return x / y, rounded once."""
    return builder.fdiv(x, _fenced(builder, y))


@instruction("int32", "float32", "float32")
def nearest_integer(builder, x, y):
    """Return the integer nearest to the rounded product x y, ties to even."""
    if X86 and not {"avx2", "avx512f"} & {*_HAS}:  # without a rounding instruction
        shift = ir.Constant(ir.FloatType(), 12582912.0)  # 1.5 2^23: near it float32 has no fractions
        moved = _fenced(builder, builder.fadd(_fenced(builder, builder.fmul(x, y)), shift))
        return builder.sub(builder.bitcast(moved, ir.IntType(32)), number(0x4B400000, 32))
    kind = ir.FunctionType(x.type, [x.type])
    rounded = cgutils.get_or_insert_function(builder.module, kind, "llvm.rint.f32")
    return builder.fptosi(builder.call(rounded, [builder.fmul(x, y)]), ir.IntType(32))


@instruction("int32", "float32", "float32")
def halves_up(builder, x, y):
    """Return trunc(x y + 8.5), the product rounded first."""
    moved = builder.fadd(_fenced(builder, builder.fmul(x, y)), ir.Constant(ir.FloatType(), 8.5))
    return builder.fptosi(moved, ir.IntType(32))


@instruction("float32", "float32")
def as_scale(builder, x):
    """Return the nearest float16 as float32; without float16 instructions, from the bits."""
    if HALVES:
        return builder.fpext(builder.fptrunc(x, SCALE), ir.FloatType())
    bits = builder.bitcast(x, ir.IntType(32))
    size = builder.and_(bits, number(0x7FFFFFFF, 32))
    odd = builder.and_(builder.lshr(size, number(13, 32)), number(1, 32))
    normal = builder.and_(builder.add(builder.add(size, odd), number(0xFFF, 32)), number(0x7FFFE000, 32))
    half = ir.Constant(ir.FloatType(), 0.5)  # its last bit is float16's smallest number
    moved = _fenced(builder, builder.fadd(builder.bitcast(size, ir.FloatType()), half))
    tiny = builder.bitcast(builder.fsub(moved, half), ir.IntType(32))
    found = builder.select(builder.icmp_unsigned("<", size, number(0x38800000, 32)), tiny, normal)  # 2^-14
    over = builder.icmp_unsigned(">", found, number(0x477FE000, 32))  # 65,504
    infinite = builder.icmp_unsigned("<=", size, number(0x7F800000, 32))
    found = builder.select(builder.and_(over, infinite), number(0x7F800000, 32), found)
    return builder.bitcast(builder.or_(found, builder.xor(bits, size)), ir.FloatType())


@instruction("void", "int64", "int64", "float32")
def put_scale(builder, address, lane, x):
    """Store a lane's scale, already rounded to float16, in the scales at an address."""
    place = builder.gep(builder.inttoptr(address, SCALE.as_pointer()), [lane])
    builder.store(builder.fptrunc(x, SCALE) if HALVES else x, place)


@instruction("float32", "int64", "int64")
def get_scale(builder, address, lane):
    """Return a lane's scale."""
    found = builder.load(builder.gep(builder.inttoptr(address, SCALE.as_pointer()), [lane]))
    return builder.fpext(found, ir.FloatType()) if HALVES else found
