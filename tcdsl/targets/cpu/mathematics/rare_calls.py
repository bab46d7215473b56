"""The few arguments that a formula without branches does not cover.

LLVM's vectorizer leaves loops alone that call a function it knows nothing of. This one has variants for vectors, which
an attribute names in LLVM's spelling of OpenMP's ``declare simd``: they ask once whether any number of the vector is
rare, and give the others back as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["computed_beyond"]

_VECTOR_BITS = (128, 256, 512)
_KEPT = "llvm.compiler.used"
_INDEX = ir.IntType(64)


def computed_beyond(end: float, name: str, formula: Callable[[Scalar], Scalar], x: Scalar) -> Scalar:
    """``formula`` of ``x`` where ``|x|`` is above ``end``, else any number; ``name`` is that of the function."""
    module = x.builder.module
    symbol = f"tcdsl.rare.{name}.{x.dtype}"
    made = module.symbols.get(symbol)
    if made is None:
        made = _function(module, symbol, end, formula, x.dtype)
    if x.lanes:
        made = _variant(module, symbol, end, x.dtype, x.lanes)
    # Around a call vectors are kept on the stack, where those that cross cache lines take twice as long.
    x.builder.function.alignment = max(_VECTOR_BITS) // 8
    return x.like(x.builder.call(made, [x.value]))


def _function(
    module: ir.Module, symbol: str, end: float, formula: Callable[[Scalar], Scalar], dtype: str
) -> ir.Function:
    kind = llvm_type(dtype)
    # Compiling it well would take longer than all of the loop does.
    one = _declared(module, f"{symbol}.one", kind, "optnone")
    builder = ir.Builder(one.append_block())
    builder.ret(formula(Scalar(builder, one.args[0], dtype)).value)
    scalar = _declared(module, symbol, kind, "optsize")
    _define(scalar, end, lambda builder, x: builder.call(one, [x]))
    variants = []
    names = []
    for bits in _VECTOR_BITS:
        lanes = bits // (32 if dtype == "float32" else 64)
        variant = _variant(module, symbol, end, dtype, lanes)
        variants.append(variant)
        names.append(f"_ZGV_LLVM_N{lanes}v_{symbol}({variant.name})")
    scalar.attributes.append(f'"vector-function-abi-variant"="{",".join(names)}"')
    _keep(module, variants)
    return scalar


def _variant(module: ir.Module, symbol: str, end: float, dtype: str, lanes: int) -> ir.Function:
    name = f"{symbol}.{lanes}"
    found: ir.Function | None = module.symbols.get(name)
    if found is None:
        one = module.symbols[f"{symbol}.one"]
        found = _declared(module, name, ir.VectorType(llvm_type(dtype), lanes), "optsize")
        _define(found, end, lambda builder, x: _each(builder, one, x))
    return found


def _declared(module: ir.Module, symbol: str, kind: ir.Type, attribute: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(kind, [kind]), symbol)
    function.linkage = "internal"
    function.attributes += ["noinline", "nounwind", attribute, "willreturn", "memory(none)"]
    return function


def _define(function: ir.Function, end: float, call: Callable[[ir.Builder, ir.Operand], ir.Operand]) -> None:
    # x itself, unless some |x| is above the end.
    (x,) = function.args
    builder = ir.Builder(function.append_block())
    called, usual = builder.append_block(), builder.append_block()
    builder.cbranch(_any_beyond(builder, x, end), called, usual, weights=(1, 1 << 20))
    builder.position_at_end(usual)
    builder.ret(x)
    builder.position_at_end(called)
    builder.ret(call(builder, x))


def _any_beyond(builder: ir.Builder, x: ir.Operand, end: float) -> ir.Operand:
    count = x.type.count if isinstance(x.type, ir.VectorType) else 0
    above, below = (ir.ConstantOperand(x.type, [each] * count if count else each) for each in (end, -end))
    over, under = builder.compare_floating(">", x, above), builder.compare_floating("<", x, below)
    beyond = builder.whole("or", over, under)
    if not count:
        return beyond
    bits = ir.IntType(count)
    return builder.compare_unsigned("!=", builder.cast("bitcast", beyond, bits), ir.ConstantOperand(bits, 0))


def _each(builder: ir.Builder, one: ir.Function, x: ir.Operand) -> ir.Operand:
    # One number after the other, rare or not.
    assert isinstance(x.type, ir.VectorType)
    before, head, done = builder.block, builder.append_block(), builder.append_block()
    builder.branch(head)
    builder.position_at_end(head)
    lane, vector = builder.phi(_INDEX), builder.phi(x.type)
    following = builder.insert_lane(vector, builder.call(one, [builder.lane(vector, lane)]), lane)
    step = builder.add(lane, ir.ConstantOperand(_INDEX, 1))
    for phi, first, then in ((lane, ir.ConstantOperand(_INDEX, 0), step), (vector, x, following)):
        phi.add_incoming(first, before)
        phi.add_incoming(then, head)
    builder.cbranch(builder.compare_unsigned("==", step, ir.ConstantOperand(_INDEX, x.type.count)), done, head)
    builder.position_at_end(done)
    return following


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    # LLVM removes functions that nobody calls before it vectorizes, but for those that this array names.
    array = module.symbols.pop(_KEPT, None)
    named = [*(array.initializer.parts if array else ()), *functions]
    initializer = ir.ConstantOperand(ir.ArrayType(ir.POINTER, len(named)), named)
    ir.GlobalVariable(module, _KEPT, "appending global", initializer, ', section "llvm.metadata"')
