"""The driver's text as one LLVM module: functions of words, and for each public one a function that Python calls.

The text is Python (`tcdsl.targets.cpu.call.driver`), whose annotations give the types. Integers wrap.
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcdsl.targets.cpu.emission.control_flow import ControlFlow
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, scalar
from tcdsl.targets.cpu.emission.interface import definitions, driver_symbols, python_symbol
from tcdsl.targets.cpu.emission.primitive_code import COMPARISONS, operation
from tcdsl.targets.cpu.emission.settled_names import Block, Name, NameUses
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["emitted_driver"]

_TYPES: Mapping[str, tuple[ir.Type, str]] = {
    "int": (WORD, "int64"),
    "object": (WORD, "int64"),  # its address
    "bool": (ir.IntType(1), "bool"),
    "None": (ir.VoidType(), ""),
}


def emitted_driver(text: str, constants: Mapping[str, int]) -> str:
    """LLVM's text for the functions of the module ``text``, in which ``constants`` are known by name.

    Names without an underscore are symbols; `python_symbol` of such a name is ``PyObject *(PyObject *self, PyObject
    *const *arguments, Py_ssize_t count)``, which lets other threads of Python run meanwhile.
    """
    emission = _DriverEmission(constants, driver_symbols(text))
    functions = definitions(text)
    for definition in functions:
        emission.declare(definition)
    for definition in functions:
        emission.define(definition)
    return str(emission.module)


class _DriverEmission:
    def __init__(self, constants: Mapping[str, int], symbols: Sequence[str]) -> None:
        self.module = ir.Module("driver")
        self._constants = constants
        self._symbols = symbols
        self._made: dict[str, tuple[ir.Function, str]] = {}

    def declare(self, definition: ast.FunctionDef) -> None:
        kind, dtype = _type(definition.returns)
        parameters = [_type(each.annotation)[0] for each in definition.args.args]
        function = ir.Function(self.module, ir.FunctionType(kind, parameters), definition.name)
        function.attributes.append("nounwind")
        self._made[definition.name] = function, dtype
        if definition.name.startswith("_"):
            function.linkage = "internal"

    def define(self, definition: ast.FunctionDef) -> None:
        function, _ = self._made[definition.name]
        names: dict[str, Any] = dict(self._constants)
        for parameter, value in zip(definition.args.args, function.args, strict=True):
            names[parameter.arg] = value, _type(parameter.annotation)[1]
        _WordsEmission(function, names, self._call).body(definition.body)
        if python_symbol(definition.name) in self._symbols:
            self._for_python(definition, function)

    def _call(self, builder: ir.Builder, name: str, arguments: list[Any]) -> Any:
        function, dtype = self._made[name]
        result = builder.call(function, [scalar(builder, each).value for each in arguments])
        return Scalar(builder, result, dtype) if dtype else None

    def _for_python(self, definition: ast.FunctionDef, function: ir.Function) -> None:
        # Takes integers and objects, and gives an integer.
        count = len(function.args)
        kind = ir.FunctionType(ir.POINTER, [ir.POINTER, ir.POINTER, WORD])
        called = ir.Function(self.module, kind, python_symbol(definition.name))
        builder = ir.Builder(called.append_block())
        _, arguments, given = called.args
        with builder.seldom(builder.compare_signed("!=", given, ir.ConstantOperand(WORD, count))):
            builder.ret(ir.ConstantOperand(ir.POINTER, None))
        words = []
        for k, parameter in enumerate(definition.args.args):
            item = builder.load(ir.POINTER, builder.element(ir.POINTER, arguments, ir.ConstantOperand(WORD, k)))
            if parameter.annotation is not None and ast.unparse(parameter.annotation) == "object":
                words.append(builder.cast("ptrtoint", item, WORD))
            else:
                words.append(builder.call(_function(builder, "PyLong_AsLongLong", WORD, ir.POINTER), [item]))
        state = builder.call(_function(builder, "PyEval_SaveThread", ir.POINTER), [])
        result = builder.call(function, words)
        builder.call(_function(builder, "PyEval_RestoreThread", ir.VoidType(), ir.POINTER), [state])
        raised = builder.call(_function(builder, "PyErr_Occurred", ir.POINTER), [])
        with builder.seldom(builder.compare_unsigned("!=", raised, ir.ConstantOperand(ir.POINTER, None))):
            builder.ret(ir.ConstantOperand(ir.POINTER, None))
        builder.ret(builder.call(_function(builder, "PyLong_FromLongLong", ir.POINTER, WORD), [result]))


class _WordsEmission(ControlFlow):
    """A function of the driver; ``names`` gives its parameters and the constants their values, scalars as pairs of a
    value and its type, and ``call(builder, name, arguments)`` writes a call of another one.
    """

    def __init__(
        self, function: ir.Function, names: Mapping[str, Any], call: Callable[[ir.Builder, str, list[Any]], Any]
    ) -> None:
        super().__init__(function, moving=False)
        for name, given in names.items():
            self._values[name] = Scalar(self._builder, *given) if isinstance(given, tuple) else given
        self._functions = {**FUNCTIONS, **_WORDS}
        self._call_function = call
        self._settled: frozenset[Name] = frozenset()

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Write ``statements`` and the function's end."""
        found = NameUses()
        _tell(found, statements, ())
        self._settled = found.settled()
        self._block(statements)
        self._end()

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, self._scalar(value))
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                held = self._named(name)
                self._assign(name, operation(type(operator), held, self._scalar(value)))
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[stop]), body=body):

                def step(at: Scalar) -> None:
                    self._assign(name, at)
                    self._block(body)

                self._steps(0, self._scalar(stop), step)
            case ast.While(test=test, body=body):
                self._while(lambda: self._scalar(test), lambda: self._block(body))
            case ast.If(test=test, body=body, orelse=orelse):
                otherwise = (lambda: self._block(orelse)) if orelse else None
                # What ends the call is unlikely.
                ends = isinstance(body[-1], ast.Return)
                self._if(self._scalar(test), lambda: self._block(body), otherwise, unlikely=ends)
            case ast.Expr(value=ast.Call() as called):
                self._value(called)
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Return(value=None):
                self._builder.ret_void()
            case ast.Return(value=ast.expr() as value):
                self._builder.ret(self._scalar(value).value)
            case _:
                raise TypeError(f"not a statement of the driver: {ast.unparse(node)}")

    def _assign(self, name: str, value: Scalar) -> None:
        if ("", name) in self._settled:
            self._values[name] = value
        else:
            self._builder.store(value.value, self._placed(name, value))

    def _scalar(self, node: ast.expr) -> Scalar:
        return scalar(self._builder, self._value(node))

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._named(name) if name in self._places else self._values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._scalar(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                first = self._scalar(left)
                return operation(type(operator), first, self._scalar(right))
            case ast.Compare(left=left, ops=[comparison], comparators=[right]):
                first = self._scalar(left)
                second = self._scalar(right)
                return COMPARISONS[type(comparison)](first, second)
            case ast.BoolOp(op=operator, values=parts):
                return self._logical(isinstance(operator, ast.And), parts)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(self._scalar(test), lambda: self._scalar(body), lambda: self._scalar(orelse))
            case ast.Call(func=ast.Name(id=function), args=arguments):
                given = [self._value(argument) for argument in arguments]
                write = self._functions.get(function)
                return write(self._builder, *given) if write else self._call_function(self._builder, function, given)
        raise TypeError(f"not an expression of the driver: {ast.unparse(node)}")

    def _logical(self, conjunction: bool, parts: Sequence[ast.expr]) -> Scalar:
        first, *others = parts
        if not others:
            return self._scalar(first)
        return self._short_circuit(conjunction, self._scalar(first), lambda: self._logical(conjunction, others))


def _tell(found: NameUses, statements: Sequence[ast.stmt], block: Block) -> None:
    # Where the driver's names are assigned and used.
    for node in statements:
        match node:
            case ast.For(target=ast.Name(id=name)):
                _uses(found, node.iter, block)
                body = found.inner(block)
                _tell(found, node.body, body)
                found.looped(("", name), body)
            case ast.While() | ast.If():
                _uses(found, node.test, block)
                _tell(found, node.body, found.inner(block))
                _tell(found, node.orelse, found.inner(block))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                _uses(found, value, block)
                found.assigned(("", name), block)
            case _:
                if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    found.accumulated(("", node.target.id))
                _uses(found, node, block)


def _uses(found: NameUses, node: ast.AST, block: Block) -> None:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.used(("", part.id), block)


def _type(annotation: ast.expr | None) -> tuple[ir.Type, str]:
    assert annotation is not None
    return _TYPES[ast.unparse(annotation)]


def _pointer(builder: ir.Builder, address: Any) -> ir.Operand:
    return builder.cast("inttoptr", scalar(builder, address).value, ir.POINTER)


def _load(width: int) -> Callable[..., Any]:
    def write(builder: ir.Builder, address: Any) -> Scalar:
        loaded = builder.load(ir.IntType(width), _pointer(builder, address))
        return Scalar(builder, builder.cast("sext", loaded, WORD), "int64")

    return write


def _store(builder: ir.Builder, address: Any, value: Any) -> None:
    builder.store(scalar(builder, value).value, _pointer(builder, address))


def _next_number(builder: ir.Builder, address: Any) -> Scalar:
    number = builder.add_shared(_pointer(builder, address), ir.ConstantOperand(WORD, 1))
    return Scalar(builder, number, "int64")


def _load_shared(builder: ir.Builder, address: Any) -> Scalar:
    # Other threads write it.
    loaded = builder.load_shared(WORD, _pointer(builder, address), 8)
    return Scalar(builder, loaded, "int64")


def _function(builder: ir.Builder, name: str, result: ir.Type, *parameters: ir.Type) -> ir.Function:
    # A function of Python's stable interface.
    found = builder.module.symbols.get(name)
    return found or ir.Function(builder.module, ir.FunctionType(result, parameters), name)


def _read_clock(builder: ir.Builder) -> Scalar:
    # Of x86 the counter of cycles, which all its cores share; elsewhere that one need not be readable.
    steady = "cycle" if platform.machine().lower() in ("x86_64", "amd64") else "steady"
    clock = builder.module.intrinsic(f"llvm.read{steady}counter", [], ir.FunctionType(WORD, []))
    return Scalar(builder, builder.call(clock, []), "int64")


def _this_thread(builder: ir.Builder) -> Scalar:
    return Scalar(builder, builder.call(_function(builder, "PyThread_get_thread_ident", WORD), []), "int64")


def _handle_signals(builder: ir.Builder) -> Scalar:
    whole = ir.IntType(32)
    state = builder.call(_function(builder, "PyGILState_Ensure", whole), [])
    failed = builder.call(_function(builder, "PyErr_CheckSignals", whole), [])
    builder.call(_function(builder, "PyGILState_Release", ir.VoidType(), whole), [state])
    return Scalar(builder, builder.cast("sext", failed, WORD), "int64")


def _call_nest(builder: ir.Builder, address: Any, *words: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [WORD] * len(words))
    builder.call(_pointer(builder, address), [scalar(builder, word).value for word in words], kind)


def _on_threads(builder: ir.Builder, parallel_for: Any, function: Any, data: Any, threads: Any) -> None:
    # ``void (void *function, char **args, size_t *dimensions, size_t *steps, void *data, size_t inner_dimensions,
    # size_t arrays, int threads)`` of Numba's threading layers: each thread calls the function for one round.
    whole = ir.IntType(32)
    rounds = builder.place(WORD)
    count = scalar(builder, threads).value
    builder.store(count, rounds)
    kind = ir.FunctionType(ir.VoidType(), [WORD, WORD, ir.POINTER, WORD, WORD, WORD, WORD, whole])
    none = ir.ConstantOperand(WORD, 0)
    words = [scalar(builder, each).value for each in (function, data)]
    given: list[ir.Operand] = [words[0], none, rounds, none, words[1], none, none]
    builder.call(_pointer(builder, parallel_for), [*given, builder.cast("trunc", count, whole)], kind)


_WORDS: Mapping[str, Callable[..., Any]] = {
    "load_word": _load(64),
    "load_int": _load(32),
    "load_byte": _load(8),
    "store_word": _store,
    "load_shared": _load_shared,
    "read_clock": _read_clock,
    "this_thread": _this_thread,
    "handle_signals": _handle_signals,
    "next_number": _next_number,
    "call_nest": _call_nest,
    "on_threads": _on_threads,
    "address_of": lambda _builder, address: address,
    "abs": FUNCTIONS["absolute"],
    "max": FUNCTIONS["maximum"],
    "min": FUNCTIONS["minimum"],
}
