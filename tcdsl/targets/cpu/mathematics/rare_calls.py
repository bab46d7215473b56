"""The few arguments that a formula without branches does not cover.

LLVM's vectorizer leaves loops alone that call a function it knows nothing of. This one has variants for vectors, which
an attribute names in LLVM's spelling of OpenMP's ``declare simd``: they ask once whether any number of the vector is
rare, and give the others back as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar, llvm_type

__all__ = ["computed_beyond"]

_VECTOR_BITS = (128, 256, 512)
_KEPT = "llvm.compiler.used"
_INDEX = ir.IntType(64)


def computed_beyond(end: float, name: str, formula: Callable[[Scalar], Scalar], x: Scalar) -> Scalar:
    """``formula`` of ``x`` where ``|x|`` is above ``end``, else any number; ``name`` is that of the function."""
    module = x.builder.module
    symbol = f"tcdsl.rare.{name}.{x.dtype}"
    made = module.globals.get(symbol)
    if made is None:
        made = _function(module, symbol, end, formula, x.dtype)
    return x.like(x.builder.call(made, [x.value]))


class _WithVariants(ir.Function):
    # llvmlite does not know the attribute.
    variants = ""

    def descr_prototype(self, buf: list[str]) -> None:
        super().descr_prototype(buf)
        attribute = f'"vector-function-abi-variant"="{self.variants}"'
        buf[-1] = f"{buf[-1].rstrip()} willreturn memory(none) {attribute}\n"


def _function(
    module: ir.Module, symbol: str, end: float, formula: Callable[[Scalar], Scalar], dtype: str
) -> ir.Function:
    kind = llvm_type(dtype)
    one = _written(ir.Function(module, ir.FunctionType(kind, [kind]), f"{symbol}.one"))
    builder = ir.IRBuilder(one.append_basic_block("entry"))
    builder.ret(formula(Scalar(builder, one.args[0], dtype)).value)
    scalar = _WithVariants(module, ir.FunctionType(kind, [kind]), symbol)
    _define(scalar, end, lambda builder, x: builder.call(one, [x]))
    variants = []
    for bits in _VECTOR_BITS:
        lanes = bits // (32 if dtype == "float32" else 64)
        vector = ir.VectorType(kind, lanes)
        variant = ir.Function(module, ir.FunctionType(vector, [vector]), f"{symbol}.{lanes}")
        _define(variant, end, lambda builder, x: _each(builder, one, x))
        variants.append(variant)
    scalar.variants = ",".join(f"_ZGV_LLVM_N{each.args[0].type.count}v_{symbol}({each.name})" for each in variants)
    _keep(module, variants)
    return scalar


def _written(function: ir.Function) -> ir.Function:
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "optsize"):
        function.attributes.add(attribute)
    return function


def _define(function: ir.Function, end: float, call: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> None:
    # x itself, unless some |x| is above the end.
    (x,) = _written(function).args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    called, usual = builder.append_basic_block("rare"), builder.append_basic_block("usual")
    builder.cbranch(_any_beyond(builder, x, end), called, usual).set_weights([1, 1 << 20])
    builder.position_at_end(usual)
    builder.ret(x)
    builder.position_at_end(called)
    builder.ret(call(builder, x))


def _any_beyond(builder: ir.IRBuilder, x: ir.Value, end: float) -> ir.Value:
    vector = isinstance(x.type, ir.VectorType)
    above, below = (ir.Constant(x.type, [each] * x.type.count if vector else each) for each in (end, -end))
    beyond = builder.or_(builder.fcmp_ordered(">", x, above), builder.fcmp_ordered("<", x, below))
    if not vector:
        return beyond
    bits = ir.IntType(x.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(beyond, bits), ir.Constant(bits, 0))


def _each(builder: ir.IRBuilder, one: ir.Function, x: ir.Value) -> ir.Value:
    # One number after the other, rare or not.
    before, head = builder.block, builder.append_basic_block("each")
    done = builder.append_basic_block("done")
    builder.branch(head)
    builder.position_at_end(head)
    lane, vector = builder.phi(_INDEX), builder.phi(x.type)
    following = builder.insert_element(vector, builder.call(one, [builder.extract_element(vector, lane)]), lane)
    step = builder.add(lane, ir.Constant(_INDEX, 1))
    for phi, first, then in ((lane, ir.Constant(_INDEX, 0), step), (vector, x, following)):
        phi.add_incoming(first, before)
        phi.add_incoming(then, head)
    builder.cbranch(builder.icmp_unsigned("==", step, ir.Constant(_INDEX, x.type.count)), done, head)
    builder.position_at_end(done)
    return following


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    # LLVM removes functions that nobody calls before it vectorizes, but for those that this array names.
    address = ir.IntType(8).as_pointer()
    array = module.globals.get(_KEPT)
    before = array.initializer.constant if array else []
    named = [*before, *(each.bitcast(address) for each in functions)]
    kind = ir.ArrayType(address, len(named))
    if array is None:
        array = ir.GlobalVariable(module, kind, _KEPT)
        array.linkage, array.section = "appending", "llvm.metadata"
    array.value_type, array.type = kind, kind.as_pointer()
    array.initializer = ir.Constant(kind, named)
