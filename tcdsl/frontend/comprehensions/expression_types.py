"""The types of expressions, and the faults of names in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError, TcdslError, suggestion
from tcdsl.frontend.comprehensions.builtins import BUILTINS, Builtin, builtin_called
from tcdsl.frontend.comprehensions.checked import TensorType
from tcdsl.frontend.comprehensions.text.element_types import at_least_float, joined, promoted
from tcdsl.frontend.comprehensions.text.syntax import (
    Binary,
    Call,
    Choice,
    Convert,
    Expression,
    Extent,
    LocalDefinition,
    Name,
    Number,
    Unary,
)
from tcdsl.frontend.words.nodes import parts_of, walk
from tcdsl.ir.dtypes import is_boolean, is_floating, is_integer
from tcdsl.span import Span

__all__ = ["COMPARISONS", "ExpressionTypes", "adapted", "arithmetic_type", "builtin_type", "size_faults"]

COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_LOGICAL = ("&&", "||")
_WIDE_UNSIGNED = ("uint32", "uint64")


def arithmetic_type(operator: str, left: str, right: str) -> str:
    """The type in which the operands of an operator meet; a comparison's result is bool."""
    if operator in ("==", "!="):
        return joined(left, right)
    return promoted(left, right)


def builtin_type(
    builtin: Builtin, parts: Sequence[Expression], types: Sequence[str], definitions: Mapping[str, LocalDefinition]
) -> str:
    """The type of a built-in function's result, and that of its operands."""
    if not builtin.keeps_type:
        return at_least_float(*types)
    return promoted(*(adapted(parts, types, definitions) if len(types) == 2 else types))


def adapted(
    parts: Sequence[Expression], types: Sequence[str], definitions: Mapping[str, LocalDefinition]
) -> Sequence[str]:
    """``types`` of the two values ``parts`` that meet: a whole number takes an unsigned type that int32 does not hold.

    As in C: ``B(i) / 2`` is uint32 where ``B`` is, and int32 where it is uint8.
    """
    left, right = types
    if right in _WIDE_UNSIGNED and left == "int32" and _is_whole_number(parts[0], definitions):
        return right, right
    if left in _WIDE_UNSIGNED and right == "int32" and _is_whole_number(parts[1], definitions):
        return left, left
    return types


def _is_whole_number(node: Expression, definitions: Mapping[str, LocalDefinition]) -> bool:
    # Numbers have no sign: `-1` is an operator, and stays an int32.
    while isinstance(node, Name) and node.name in definitions:
        node = definitions[node.name].value
    return isinstance(node, Number) and not node.is_float


@dataclass(slots=True)
class ExpressionTypes:
    """The types of expressions of one statement; what is wrong with them goes to ``faults``, and has no type.

    ``known`` are the tensors that have been written, ``unwritten`` the results that have not, and ``variables`` the
    names that turned out to be index variables.
    """

    sizes: Collection[str]
    known: Mapping[str, TensorType]
    unwritten: Collection[str]
    functions: Collection[str]
    faults: list[Diagnostic]
    definitions: dict[str, LocalDefinition] = field(default_factory=dict)
    variables: dict[str, Name] = field(default_factory=dict)
    _types: dict[str, str | None] = field(default_factory=dict)

    def fault(self, fact: str, span: Span | None, hint: str = "", kind: type[TcdslError] = DslSyntaxError) -> None:
        """Note a fault, which has no type."""
        self.faults.append(Diagnostic(kind, fact, span, (), hint))

    def define(self, definition: LocalDefinition) -> None:
        """Know a local definition, whose value may mention earlier ones."""
        # What it mentions counts only where it is used.
        inner = ExpressionTypes(self.sizes, self.known, self.unwritten, self.functions, self.faults, self.definitions)
        inner._types = self._types
        self._types[definition.name.name] = inner.of(definition.value)
        self.definitions[definition.name.name] = definition

    def use(self, name: str) -> None:
        """A local definition is used: so are the index variables in it."""
        for node in walk(self.definitions[name].value):
            if isinstance(node, Name):
                if node.name in self._types:
                    continue
                if node.name not in self.sizes and node.name not in self.known and node.name not in self.unwritten:
                    self.variables.setdefault(node.name, node)

    def of(self, expression: Expression) -> str | None:
        """The type of ``expression``; None after a fault."""
        match expression:
            case Number(is_float=is_float):
                return "float32" if is_float else "int32"
            case Name():
                return self._name(expression)
            case Extent():
                return self._extent(expression)
            case Call():
                return self._call(expression)
            case Convert(dtype=dtype, operand=operand):
                return None if self.of(operand) is None else dtype
            case Unary():
                return self._unary(expression)
            case Binary():
                return self._binary(expression)
            case Choice():
                return self._choice(expression)

    def _name(self, name: Name) -> str | None:
        if name.name in self._types:
            self._use_with_others(name.name)
            return self._types[name.name]
        if name.name in self.sizes:
            return "int32"
        if name.name in self.unwritten:
            self._unwritten(name)
            return None
        if name.name in self.known:
            tensor = self.known[name.name]
            if tensor.rank:
                fact = f"`{name.name}` has rank {tensor.rank} and stands without indices"
                letters = ", ".join("ijklmn"[k % 6] for k in range(tensor.rank))
                self.fault(fact, name.span, f"write `{name.name}({letters})`", ShapeError)
                return None
            return tensor.dtype
        self.variables.setdefault(name.name, name)
        return "int32"

    def _use_with_others(self, name: str) -> None:
        # Each is looked into once, however often others mention it.
        waiting, seen = [name], {name}
        while waiting:
            inner = waiting.pop()
            if inner not in self.definitions:
                continue
            self.use(inner)
            for node in walk(self.definitions[inner].value):
                if isinstance(node, Name) and node.name in self._types and node.name not in seen:
                    seen.add(node.name)
                    waiting.append(node.name)

    def _unwritten(self, name: Name) -> None:
        self.fault(
            f"`{name.name}` is read before any statement has written it",
            name.span,
            f"write it first, as in `{name.name}(i) = 0.0 where i in 0:N`",
        )

    def _extent(self, extent: Extent) -> str | None:
        name = extent.tensor
        if name.name in self.unwritten:
            self._unwritten(name)
            return None
        if name.name not in self.known:
            self.fault(f"`{name.name}` is no tensor, so it has no extents", extent.span)
            return None
        rank = self.known[name.name].rank
        if extent.axis >= rank:
            fact = f"`{name.name}` has rank {rank}, and no axis {extent.axis}"
            self.fault(fact, extent.span, "axes count from 0", ShapeError)
            return None
        return "int32"

    def _call(self, call: Call) -> str | None:
        name = call.name.name
        tensor = name in self.known or name in self.unwritten
        if name in self.functions and not tensor and name not in self._types:
            fact = f"`{name}` is a definition, whose call is a statement of its own"
            self.fault(fact, call.span, f"write `t = {name}(...)`, with a result `t`, and read `t`")
            return None
        types = [self.of(argument) for argument in call.arguments]
        if name in self._types:
            hint = f"write `{name}` alone"
            self.fault(f"`{name}` is a local definition, a scalar at each point", call.name.span, hint)
            return None
        if name in self.unwritten:
            self._unwritten(call.name)
            return None
        if name in self.known:
            return self._access(call, types)
        if name in self.sizes:
            self.fault(f"`{name}` is a size, and has no indices", call.name.span)
            return None
        if builtin_called(name) is not None:
            return self._builtin(call, types)
        hint = suggestion(name, [*self.known, *BUILTINS, *self.functions])
        self.fault(f"`{name}` is neither a tensor nor a built-in function", call.name.span, hint)
        return None

    def _access(self, call: Call, types: list[str | None]) -> str | None:
        name = call.name.name
        tensor = self.known[name]
        if len(types) != tensor.rank:
            given = f"{len(types)} {'index' if len(types) == 1 else 'indices'}"
            fact = f"`{name}` has rank {tensor.rank} and is given {given}"
            self.fault(fact, call.span, "give one index per axis", ShapeError)
            return None
        for argument, dtype in zip(call.arguments, types, strict=True):
            if dtype is not None and not is_integer(dtype):
                span = argument.span
                self.fault(f"an index of type {dtype}", span, "convert it, as in `int32(x)`", DtypeError)
        return tensor.dtype

    def _builtin(self, call: Call, types: list[str | None]) -> str | None:
        name = call.name.name
        builtin = builtin_called(name)
        assert builtin is not None
        if len(types) != builtin.arity:
            plural = "argument" if builtin.arity == 1 else "arguments"
            self.fault(f"`{name}` takes {builtin.arity} {plural}, not {len(types)}", call.span)
            return None
        known = [dtype for dtype in types if dtype is not None]
        if len(known) < len(types):
            return None
        return builtin_type(builtin, call.arguments, known, self.definitions)

    def _unary(self, node: Unary) -> str | None:
        dtype = self.of(node.operand)
        if dtype is None or node.operator == "-":
            return None if dtype is None else promoted(dtype)
        return self._truth(node.operand, dtype, "`!`")

    def _truth(self, node: Expression, dtype: str | None, place: str) -> str | None:
        if dtype is not None and not is_boolean(dtype):
            self.fault(f"{place} takes bool, not {dtype}", node.span, "compare it: `x != 0`", DtypeError)
            return None
        return dtype

    def _binary(self, node: Binary) -> str | None:
        left, right = self.of(node.left), self.of(node.right)
        if node.operator in _LOGICAL:
            place = f"`{node.operator}`"
            both = self._truth(node.left, left, place), self._truth(node.right, right, place)
            return None if None in both else "bool"
        if left is None or right is None:
            return None
        if node.operator in COMPARISONS:
            return "bool"
        dtype = arithmetic_type(node.operator, *adapted((node.left, node.right), (left, right), self.definitions))
        if node.operator == "%" and is_floating(dtype):
            fact = f"`%` takes integers, not {left if is_floating(left) else right}"
            self.fault(fact, node.span, "write `fmod(a, b)` for the rest of reals", DtypeError)
            return None
        return dtype

    def _choice(self, node: Choice) -> str | None:
        condition = self._truth(node.condition, self.of(node.condition), "the condition of `?`")
        chosen, other = self.of(node.chosen), self.of(node.other)
        if condition is None or chosen is None or other is None:
            return None
        return joined(*adapted((node.chosen, node.other), (chosen, other), self.definitions))


def size_faults(
    expression: Expression, sizes: Collection[str], tensors: Collection[str], faults: list[Diagnostic]
) -> bool:
    """Note what in ``expression`` is not made of sizes alone; whether there was nothing."""
    before = len(faults)
    for node in walk(expression):
        fact = ""
        match node:
            case Name(name=name) if name not in sizes:
                kind = "tensor" if name in tensors else "index"
                fact = f"the {kind} `{name}` in the bound of a range"
            case Call(name=Name(name=name)) if name not in ("min", "max"):
                fact = f"`{name}(...)` in the bound of a range"
            case Number(is_float=True) | Convert():
                fact = "a bound of a range that is no size"
            case _ if any(map(_is_truth, _numbers_in(node))):
                fact = "a truth value in the bound of a range"
        if fact:
            hint = "bounds are made of sizes and whole numbers: `i in 1:N - 1`, `k in 0:A.1`"
            faults.append(Diagnostic(DslSyntaxError, fact, node.span, (), hint))
            break
    return len(faults) == before


def _is_truth(node: Expression) -> bool:
    match node:
        case Unary(operator=operator) | Binary(operator=operator):
            return operator in COMPARISONS or operator in ("!", *_LOGICAL)
    return False


def _numbers_in(node: Expression) -> tuple[Expression, ...]:
    # The parts that have to be numbers; what has to be a truth value is looked at with all types.
    match node:
        case Choice(chosen=chosen, other=other):
            return (chosen, other)
        case Unary(operator="!") | Binary(operator="&&" | "||"):
            return ()
    return parts_of(node)
