"""Scalar expressions as a list of named steps, so that derivatives share instead of repeat.

``Tape.flatten`` turns ``sin(x[i]) * sin(x[i])`` into ``t0 = x[i]; t1 = sin(t0); t2 = t1 * t1``: each step has only
leaves as arguments, equal steps are one step, and nothing grows faster than the expression. ``Tape.assemble`` turns a
step back into an expression: a step that is used once is put where it is used, the others become `Let`s around their
uses, as far inside as all uses allow. Since `Let` is lazy, nothing is evaluated that the original would not evaluate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
    children,
    is_affine_index,
    is_plain_read,
    map_children,
    walk,
)
from tcdsl.simplification.expressions.folding import fold

__all__ = ["Tape", "shared"]

_Leaf = Constant | SizeValue | IndexValue | Local
_LOGIC = frozenset(("and_", "or_", "not_"))
# Logic with more parts stays behind its name: no set of points is made of so many.
_MOST_PARTS = 64


class Tape:
    """Steps in the order in which they were made.

    With ``either_zero`` the sign of a zero does not count: differences may change sides.
    """

    def __init__(self, *, either_zero: bool = False) -> None:
        self._either_zero = either_zero
        self._names: dict[Expr, str] = {}
        self._steps: dict[str, Expr] = {}
        self._lengths: dict[str, int] = {}
        self._mentioned: dict[str, list[str]] = {}

    def add(self, step: Expr) -> Expr:
        """The leaf that stands for ``step``, whose arguments are leaves; an equal step before it is used again."""
        if isinstance(step, Apply | Cast):
            folded = fold(step, self.definition)
            if folded is not step and folded != step:
                return self.flatten(folded)
        if isinstance(step, _Leaf) or _is_index(step):
            return step
        name = self._names.get(step)
        if name is None and isinstance(step, Apply) and step.primitive in ("add", "mul"):
            # a + b for b + a: sums and products of two numbers round alike.
            name = self._names.get(_exchanged(step))
        elif name is None and self._either_zero and isinstance(step, Apply) and _is_difference(step):
            # b - a beside a - b: one difference is enough.
            difference = self._names.get(_exchanged(step))
            if difference is not None:
                step = Apply("neg", (Local(difference, step.dtype),), step.dtype, step.span)
                name = self._names.get(step)
        if name is None:
            name = f"t{len(self._steps)}"
            self._names[step] = name
            self._steps[name] = step
            self._lengths[name] = self._length(step)
        return Local(name, step.dtype, step.span)

    def flatten(self, expr: Expr, environment: Mapping[str, Expr] | None = None) -> Expr:
        """The leaf that stands for any expression. ``environment`` says what its free `Local`s are, as leaves."""
        values = environment or {}
        match expr:
            case Local(name=name):
                return values.get(name, expr)
            case Let(name=name, value=value, body=body):
                return self.flatten(body, {**values, name: self.flatten(value, values)})
            case _ if _is_index(expr):
                return expr
            case Apply(primitive="neg", arguments=(Apply(arguments=(left, right)) as step,)) if (
                self._either_zero and _is_difference(step)
            ):
                return self.flatten(Apply("sub", (right, left), expr.dtype, expr.span), values)
            case _:
                return self.add(map_children(expr, lambda part: self.flatten(part, values)))

    def definition(self, leaf: Expr) -> Expr:
        """The step behind a leaf: a `Local` of this tape is looked up, anything else is itself."""
        return self._steps.get(leaf.name, leaf) if isinstance(leaf, Local) else leaf

    def steps(self, roots: Iterable[Expr]) -> list[str]:
        """The names of the steps that ``roots`` need, each after the steps that it needs."""
        needed: set[str] = set()
        stack = [name for root in roots for name in self._uses(root)]
        while stack:
            name = stack.pop()
            if name not in needed:
                needed.add(name)
                stack.extend(self._mentions(name))
        return [name for name in self._steps if name in needed]

    def _uses(self, step: Expr) -> list[str]:
        # The steps that a step or leaf mentions, once per mention.
        return [node.name for node in walk(step) if isinstance(node, Local) and node.name in self._steps]

    def _mentions(self, name: str) -> list[str]:
        found = self._mentioned.get(name)
        if found is None:
            found = self._mentioned[name] = self._uses(self._steps[name])
        return found

    def conjuncts(self, condition: Expr) -> list[Expr]:
        """The parts of a conjunction, each once, written out as far as they say something of points.

        What depends on data stays the name of a step: where choices depend on what choices have computed, each level
        of them would double what is written out.
        """
        found: dict[Expr, None] = {}
        seen: set[Expr] = set()
        pending = [condition]
        while pending:
            leaf = pending.pop()
            if leaf in seen:
                continue
            seen.add(leaf)
            step = self.definition(leaf)
            if isinstance(step, Apply) and step.primitive == "and_":
                pending.extend(reversed(step.arguments))
            else:
                found[self._of_points(leaf)] = None
        return list(found)

    def _of_points(self, part: Expr) -> Expr:
        if not isinstance(part, Local):
            return map_children(part, self._of_points)
        return self._of_points(self._steps[part.name]) if self._lengths.get(part.name, 0) else part

    def _length(self, step: Expr) -> int:
        # The length of a step that says something of points, or joins conditions; 0 if it does not, or is too long.
        if isinstance(step, Read) or is_floating(step.dtype):
            return 0
        lengths = [self._lengths.get(part.name, 0) if isinstance(part, Local) else 1 for part in children(step)]
        logic = isinstance(step, Apply) and step.primitive in _LOGIC
        length = 1 + sum(max(each, 1) for each in lengths)
        return length if length <= _MOST_PARTS and (logic or 0 not in lengths) else 0

    def expand(self, root: Expr) -> Expr:
        """``root`` with every step written out. May be much larger than what `assemble` gives."""
        if isinstance(root, Local):
            step = self._steps.get(root.name)
            return root if step is None else self.expand(step)
        return map_children(root, self.expand)

    def assemble(self, root: Expr) -> Expr:
        """``root`` as one expression in which every step is computed at most once."""
        order = self.steps([root])
        users: dict[str, list[str]] = {name: [] for name in order}
        for user in (*order, ""):
            for name in self._uses(root) if user == "" else self._mentions(user):
                users[name].append(user)
        shared = {name for name in order if len(users[name]) > 1 and not _is_plain(self._steps[name])}
        homes = self._homes(order, users)
        bound: dict[str, list[str]] = {}
        for name in order:
            if name in shared:
                bound.setdefault(homes[name], []).append(name)
        built: dict[str, Expr] = {}
        for name in order:
            built[name] = self._enclosed(self._inlined(self._steps[name], shared, built), bound.get(name, ()), built)
        return self._enclosed(self._inlined(root, shared, built), bound.get("", ()), built)

    @staticmethod
    def _homes(order: list[str], users: Mapping[str, list[str]]) -> dict[str, str]:
        # The nearest step through which all uses of a step go: its immediate dominator, with "" for the root.
        homes: dict[str, str] = {}
        depth = {"": 0}
        for name in reversed(order):
            home = users[name][0]
            for other in users[name][1:]:
                while home != other:
                    if depth[home] >= depth[other]:
                        home = homes[home]
                    else:
                        other = homes[other]
            homes[name] = home
            depth[name] = depth[home] + 1
        return homes

    def _inlined(self, step: Expr, shared: set[str], built: Mapping[str, Expr]) -> Expr:
        if isinstance(step, Local):
            if step.name in shared or step.name not in built:
                return step
            return built[step.name]
        return map_children(step, lambda part: self._inlined(part, shared, built))

    @staticmethod
    def _enclosed(body: Expr, names: Iterable[str], built: Mapping[str, Expr]) -> Expr:
        for name in reversed(tuple(names)):
            body = Let(name, built[name], body)
        return body


def _is_index(expr: Expr) -> bool:
    # Index arithmetic stays whole, so that targets and domains can be read off it.
    return expr.dtype == "int64" and is_affine_index(expr)


def _is_difference(step: Apply) -> bool:
    return step.primitive == "sub" and is_floating(step.dtype)


def _exchanged(step: Apply) -> Apply:
    return Apply(step.primitive, step.arguments[::-1], step.dtype, step.span)


def _is_plain(step: Expr) -> bool:
    # Reading a cell or converting a size twice costs less than a name for it costs the reader.
    if isinstance(step, Cast):
        return isinstance(step.operand, SizeValue | IndexValue)
    return isinstance(step, Read) and is_plain_read(step)


def shared(expr: Expr) -> Expr:
    """``expr`` simplified, with repeated steps computed once: ``sin(x) * sin(x)`` binds ``sin(x)``."""
    tape = Tape()
    return tape.assemble(tape.flatten(expr))
