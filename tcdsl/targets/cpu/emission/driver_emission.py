"""The driver's text as one LLVM module: functions of words, and for each public one a function that Python calls.

The text is Python (`tcdsl.targets.cpu.call.driver`), whose annotations give the types. Integers wrap.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from tcdsl.targets.cpu.emission.driver_symbols import definitions, driver_symbols, python_symbol
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, scalar
from tcdsl.targets.cpu.emission.function_emission import FunctionEmission
from tcdsl.targets.cpu.intrinsics.frame_memory import BYTES, WORD
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["emitted_driver"]

_TYPES: Mapping[str, tuple[ir.Type, str]] = {
    "int": (WORD, "int64"),
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
        function.attributes.add("nounwind")
        self._made[definition.name] = function, dtype
        if definition.name.startswith("_"):
            function.linkage = "internal"

    def define(self, definition: ast.FunctionDef) -> None:
        function, _ = self._made[definition.name]
        names: dict[str, Any] = dict(self._constants)
        for parameter, value in zip(definition.args.args, function.args, strict=True):
            names[parameter.arg] = Scalar(None, value, _type(parameter.annotation)[1])
        functions = {**FUNCTIONS, **_WORDS}
        FunctionEmission(function, names, self._call, functions, wrapping=True).body(definition.body)
        if python_symbol(definition.name) in self._symbols:
            self._for_python(definition.name, function)

    def _call(self, builder: ir.IRBuilder, name: str, arguments: list[Any]) -> Any:
        function, dtype = self._made[name]
        result = builder.call(function, [scalar(builder, each).value for each in arguments])
        return Scalar(builder, result, dtype) if dtype else None

    def _for_python(self, name: str, function: ir.Function) -> None:
        # Takes and gives integers.
        count = len(function.args)
        kind = ir.FunctionType(BYTES, [BYTES, BYTES.as_pointer(), WORD])
        called = ir.Function(self.module, kind, python_symbol(name))
        builder = ir.IRBuilder(called.append_basic_block("entry"))
        _, arguments, given = called.args
        with builder.if_then(builder.icmp_signed("!=", given, ir.Constant(WORD, count)), likely=False):
            builder.ret(ir.Constant(BYTES, None))
        words = []
        for k in range(count):
            item = builder.load(builder.gep(arguments, [ir.Constant(WORD, k)]))
            words.append(builder.call(_function(builder, "PyLong_AsLongLong", WORD, BYTES), [item]))
        state = builder.call(_function(builder, "PyEval_SaveThread", BYTES), [])
        result = builder.call(function, words)
        builder.call(_function(builder, "PyEval_RestoreThread", ir.VoidType(), BYTES), [state])
        raised = builder.call(_function(builder, "PyErr_Occurred", BYTES), [])
        with builder.if_then(builder.icmp_unsigned("!=", raised, ir.Constant(BYTES, None)), likely=False):
            builder.ret(ir.Constant(BYTES, None))
        builder.ret(builder.call(_function(builder, "PyLong_FromLongLong", BYTES, WORD), [result]))


def _type(annotation: ast.expr | None) -> tuple[ir.Type, str]:
    assert annotation is not None
    return _TYPES[ast.unparse(annotation)]


def _pointer(builder: ir.IRBuilder, address: Any, kind: ir.Type) -> ir.Value:
    return builder.inttoptr(scalar(builder, address).value, kind.as_pointer())


def _load(width: int) -> Callable[..., Any]:
    def write(builder: ir.IRBuilder, address: Any) -> Scalar:
        loaded = builder.load(_pointer(builder, address, ir.IntType(width)))
        return Scalar(builder, builder.sext(loaded, WORD) if width < WORD.width else loaded, "int64")

    return write


def _store(builder: ir.IRBuilder, address: Any, value: Any) -> None:
    builder.store(scalar(builder, value).value, _pointer(builder, address, WORD))


def _next_number(builder: ir.IRBuilder, address: Any) -> Scalar:
    number = builder.atomic_rmw("add", _pointer(builder, address, WORD), ir.Constant(WORD, 1), "monotonic")
    return Scalar(builder, number, "int64")


def _load_shared(builder: ir.IRBuilder, address: Any) -> Scalar:
    # Other threads write it.
    loaded = builder.load_atomic(_pointer(builder, address, WORD), "monotonic", 8)
    return Scalar(builder, loaded, "int64")


def _function(builder: ir.IRBuilder, name: str, result: ir.Type, *parameters: ir.Type) -> ir.Function:
    # A function of Python's stable interface.
    found = builder.module.globals.get(name)
    return found or ir.Function(builder.module, ir.FunctionType(result, parameters), name)


def _this_thread(builder: ir.IRBuilder) -> Scalar:
    return Scalar(builder, builder.call(_function(builder, "PyThread_get_thread_ident", WORD), []), "int64")


def _handle_signals(builder: ir.IRBuilder) -> Scalar:
    whole = ir.IntType(32)
    state = builder.call(_function(builder, "PyGILState_Ensure", whole), [])
    failed = builder.call(_function(builder, "PyErr_CheckSignals", whole), [])
    builder.call(_function(builder, "PyGILState_Release", ir.VoidType(), whole), [state])
    return Scalar(builder, builder.sext(failed, WORD), "int64")


def _call_nest(builder: ir.IRBuilder, address: Any, *words: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [WORD] * len(words))
    builder.call(_pointer(builder, address, kind), [scalar(builder, word).value for word in words])


def _on_threads(builder: ir.IRBuilder, parallel_for: Any, function: Any, data: Any, threads: Any) -> None:
    # ``void (void *function, char **args, size_t *dimensions, size_t *steps, void *data, size_t inner_dimensions,
    # size_t arrays, int threads)`` of Numba's threading layers: each thread calls the function for one round.
    whole = ir.IntType(32)
    with builder.goto_entry_block():
        rounds = builder.alloca(WORD)
    count = scalar(builder, threads).value
    builder.store(count, rounds)
    kind = ir.FunctionType(ir.VoidType(), [WORD, WORD, WORD.as_pointer(), WORD, WORD, WORD, WORD, whole])
    none = ir.Constant(WORD, 0)
    given = [scalar(builder, function).value, none, rounds, none, scalar(builder, data).value, none, none]
    builder.call(_pointer(builder, parallel_for, kind), [*given, builder.trunc(count, whole)])


_WORDS: Mapping[str, Callable[..., Any]] = {
    "load_word": _load(64),
    "load_int": _load(32),
    "load_byte": _load(8),
    "store_word": _store,
    "load_shared": _load_shared,
    "this_thread": _this_thread,
    "handle_signals": _handle_signals,
    "next_number": _next_number,
    "call_nest": _call_nest,
    "on_threads": _on_threads,
    "abs": FUNCTIONS["absolute"],
    "max": FUNCTIONS["maximum"],
    "min": FUNCTIONS["minimum"],
}
