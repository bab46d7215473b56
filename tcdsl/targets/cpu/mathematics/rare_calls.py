"""The few arguments that a formula without branches does not cover.

LLVM's vectorizer leaves loops alone that call a function it knows nothing of. This one has variants for vectors, which
an attribute names in LLVM's spelling of OpenMP's ``declare simd``: they ask once whether any number of the vector is
rare, and give the others back as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

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
    # Around a call vectors are kept on the stack, where those that cross cache lines take twice as long.
    x.builder.function.attributes.alignstack = max(_VECTOR_BITS) // 8
    return x.like(x.builder.call(made, [x.value]))


class _Pure(ir.Function):
    # A function without effects; llvmlite does not know how LLVM 16 and later say so, nor the attribute of variants.
    variants: tuple[ir.Function, ...] = ()

    def descr_prototype(self, buf: list[str]) -> None:
        super().descr_prototype(buf)
        effects = "willreturn memory(none)"
        names = (f"_ZGV_LLVM_N{each.args[0].type.count}v_{self.name}({each.name})" for each in self.variants)
        listed = f' "vector-function-abi-variant"="{",".join(names)}"' if self.variants else ""
        buf[-1] = f"{buf[-1].rstrip()} {effects}{listed}\n"


def _function(
    module: ir.Module, symbol: str, end: float, formula: Callable[[Scalar], Scalar], dtype: str
) -> ir.Function:
    kind = llvm_type(dtype)
    # Compiling it well would take longer than all of the loop does.
    one = _declared(module, f"{symbol}.one", kind, "optnone")
    builder = ir.IRBuilder(one.append_basic_block("entry"))
    builder.ret(formula(Scalar(builder, one.args[0], dtype)).value)
    scalar = _declared(module, symbol, kind, "optsize")
    _define(scalar, end, lambda builder, x: builder.call(one, [x]))
    variants = []
    for bits in _VECTOR_BITS:
        lanes = bits // (32 if dtype == "float32" else 64)
        variant = _declared(module, f"{symbol}.{lanes}", ir.VectorType(kind, lanes), "optsize")
        _define(variant, end, lambda builder, x: _each(builder, one, x))
        variants.append(variant)
    scalar.variants = tuple(variants)
    _keep(module, variants)
    return scalar


def _declared(module: ir.Module, symbol: str, kind: ir.Type, attribute: str) -> _Pure:
    function = _Pure(module, ir.FunctionType(kind, [kind]), symbol)
    function.linkage = "internal"
    for each in ("noinline", "nounwind", attribute):
        function.attributes.add(each)
    return function


def _define(function: ir.Function, end: float, call: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> None:
    # x itself, unless some |x| is above the end.
    (x,) = function.args
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
