"""Loops and branches, rewritten so that they may run: `tcdsl.frontend.running_loops.loop_recorder`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tcdsl.frontend.python.binding_rewriting import RECORDER, BindingRewriter, may_hold_letters, parts_of, recorder_call
from tcdsl.frontend.python.loop_jumps import breaks, without_jumps
from tcdsl.frontend.python.named_conditions import with_names_before, with_names_inside
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.source.assigned_names import binding_of, bindings_of
from tcdsl.frontend.source.changes_in_place import (
    CHANGING,
    TellingParts,
    changed_names,
    deleted_names,
    names_given_to_calls,
    root_of,
)
from tcdsl.frontend.source.rewritten_functions import ARM, CHOICE, thunk
from tcdsl.frontend.source.syntax_trees import copied

__all__ = ["LoopRewriter", "as_branch"]


class Renewal(ast.Pass):
    """Where the ``target`` of a round of the loop that ``given`` names is new, if Python makes the rounds."""

    def __init__(self, target: str, given: ast.expr) -> None:
        super().__init__()
        self.target, self.given = target, given


class LoopRewriter(BindingRewriter, ast.NodeTransformer):
    """Rewrites `for`, `while` and `if`; ``loops`` says whether there was one."""

    loops = False
    #: How many bodies of loops and arms of branches are around what is rewritten.
    _around = 0

    @functools.cached_property
    def _telling(self) -> TellingParts:
        return TellingParts()

    def _loop_statement(
        self, body: Sequence[ast.stmt], loop: ast.For | ast.While | None = None, left: str = ""
    ) -> LoopStatement:
        parts = self._telling.of(body)
        first = _first_stores(parts)
        made = loop_statement(body, first, loop, left)
        changes = {name: place for name, place in changed_names(parts) if name in self.own}
        found = {*made.names, *changes} - self.names.outside
        if any(isinstance(part, ast.Call) for part in parts):
            found |= self.names.of_nested_functions
        names = tuple(sorted(found.difference(made.numbers)))
        others = self.own.difference(names, made.numbers)
        lent = {name: place for name, place in names_given_to_calls(parts) if name in others}
        renewals: list[tuple[str, list[ast.stmt]]] = []
        if loop is not None and not self.in_place:
            # Memory is what it was.
            places = _renewed(loop.body, {*names, *made.numbers})
            renewals = [(name, block) for name, block in places if name in self.names.targets]
        renewed = frozenset(name for name, _ in renewals)
        deletes = dict(deleted_names(parts))
        made = replace(made, names=names, changes=changes, deletes=deletes, stores=first, lent=lent, renewed=renewed)
        for name, block in renewals:
            block.insert(0, ast.copy_location(Renewal(name, self._statement_name(made)), block[0]))
        return made

    def visit(self, node: ast.AST) -> Any:
        """``node``, rewritten; what it changes outside of the function is told before it."""
        bound = binding_of(node) & self.names.outside if self._around and isinstance(node, ast.stmt) else ()
        place = next((each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr | ast.withitem)), node)
        place = node if isinstance(node, ast.Assign | ast.AugAssign) else place
        told = [self._told_before(ast.Name(name, ast.Load()), place) for name in sorted(bound)]
        made = super().visit(node)
        return [*told, *(made if isinstance(made, list) else [made])] if told else made

    def outside_change(self, node: ast.Assign | ast.AugAssign | ast.Delete) -> list[ast.stmt]:
        """What is said to the recorder before ``self.h = h`` and the like in a body."""
        if not self._around:
            return []
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        return [self._told_before(each, node) for target in targets for each in _stored_parts(target)]

    def visit_Delete(self, node: ast.Delete) -> ast.AST | list[ast.stmt]:
        """``del`` of an attribute, or of a part of what the function does not own."""
        told = [] if all(root_of(each) in self.own for each in node.targets) else self.outside_change(node)
        self.generic_visit(node)
        return [*told, node]

    def _told_before(self, part: ast.expr, node: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Expr(self._told("changes", part, node)), node)

    def outside_call(self, node: ast.Call) -> None:
        """Have the recorder see what ``out.append(h)`` changes in a body, and `print`."""
        function = node.func
        if not self._around:
            return
        if isinstance(function, ast.Name) and function.id == "print":
            node.func = recorder_call("printing", function, at=function)
        if isinstance(function, ast.Name) and function.id in ("setattr", "delattr") and node.args:
            root = ast.Constant(root_of(node.args[0]))
            node.func = recorder_call("storing", function, root, at=function)
        if not isinstance(function, ast.Attribute) or function.attr not in CHANGING:
            return
        base = function.value
        while isinstance(base, ast.Subscript):
            base = base.value
        if not (isinstance(base, ast.Name) and base.id in self.own):
            told = self._told("changing", function, node)
            told.args.append(function.value)
            function.value = told

    def _told(self, method: str, part: ast.expr, node: ast.AST) -> ast.Call:
        return recorder_call(method, ast.Constant(ast.unparse(part)), ast.Constant(root_of(part)), at=node)

    def visit_Renewal(self, node: Renewal) -> ast.stmt:
        """Where a target may be new."""
        arguments = node.given, ast.Constant(node.target), ast.Name(node.target, ast.Load())
        held = recorder_call("renewed", *arguments, at=node)
        return ast.fix_missing_locations(self._store((node.target,), held, node))

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """``for``, as a loop over the rounds that the recorder gives."""
        if not all(
            isinstance(part, ast.Name | ast.Tuple | ast.List | ast.expr_context) for part in ast.walk(node.target)
        ):
            return self.generic_visit(node)
        left = self._without_jumps(node)
        statement, place = self._loop_statement(node.body, node, left), node.iter
        iterable = self._iterable(node.iter)
        node.body, node.orelse = self._visited(node.body), self._visited(node.orelse)
        return self._rounds(node, statement, "rounds", [iterable], place, left)

    def _iterable(self, node: ast.expr) -> ast.expr:
        # Functions are looked at before they are called: `range` of a size is no call of Python's.
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            visited: ast.expr = self.visit(node)
            return visited
        function, given = self.visit(node.func), [self._iterable(each) for each in node.args]
        made = recorder_call("iterated", function, *given, at=node)
        made.keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        return made

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """``while``, as a loop over rounds that a condition ends."""
        node = with_names_inside(node)
        if not _may_be_asked_again(node.test):
            return self.generic_visit(node)
        left = self._without_jumps(node)
        statement = self._loop_statement(node.body, node, left)
        place, test = node.test, self._condition(node)
        body, target = self._visited(node.body), ast.Name(ARM, ast.Store())
        made = ast.For(target, node.test, body, self._visited(node.orelse), None)
        return self._rounds(ast.copy_location(made, node), statement, "while_rounds", [test], place, left)

    def _without_jumps(self, node: ast.For | ast.While) -> str:
        # The name that says whether a round was left by `break`; empty if none is.
        left = f"{RECORDER}left_{node.lineno}_{node.col_offset}"
        breaking, body = breaks(node.body), without_jumps(node.body, left)
        if body == node.body:
            return ""
        node.body = body
        return left if breaking else ""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """``if``, as a loop over the arms that are to run; as it is where an arm leaves it early."""
        *before, last = with_names_before(node)
        if before or last is not node:
            return self._visited([*before, last], around=False)
        body = [*node.body, *node.orelse]
        statement = self._loop_statement(body)
        if statement.leaves or not _may_be_asked_again(node.test) or self._yields(body):
            return self.generic_visit(node)
        place, test = node.test, self._condition(node)
        arm, given = f"{ARM}{len(self.statements)}", self._statement_name(statement)
        arms = [self._raising(each, given) for each in (node.body, node.orelse)]
        taken = ast.copy_location(ast.If(ast.Name(arm, ast.Load()), *arms), node)
        made = ast.For(ast.Name(arm, ast.Store()), node.test, [taken], [], None)
        return self._rounds(ast.copy_location(made, node), statement, "arms", [test], place, given=given)

    # -- expressions: only the side that is taken is evaluated, if Python knows which one it is

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """``a if c else b``, which may be a branch that runs."""
        if not _may_be_asked_again(node):
            return self.generic_visit(node)
        statement = self._statement_name(LoopStatement((), (CHOICE,), arms=True))
        condition = self._condition(node)
        sides = [thunk(self._returned(each, node)) for each in (node.body, node.orelse)]
        return recorder_call("chosen", statement, condition, *sides, at=node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """``a or b`` and ``a and b`` as values."""
        if not _may_be_asked_again(node):
            return self.generic_visit(node)
        statement = self._statement_name(LoopStatement((), (CHOICE,), arms=True))
        parts = [thunk(self._returned(each, node)) for each in node.values]
        return recorder_call("first_of", statement, ast.Constant(isinstance(node.op, ast.And)), *parts, at=node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``a < b < c`` as a value."""
        if len(node.ops) == 1 or not _may_be_asked_again(node):
            return self.generic_visit(node)
        return self._connected(node, node)

    def _returned(self, value: ast.expr, node: ast.stmt | ast.expr) -> ast.expr:
        # A value that has no name yet: a bare reduction in it is a tensor.
        if isinstance(value, ast.Tuple | ast.List) and not any(isinstance(each, ast.Starred) for each in value.elts):
            value.elts = [self._returned(each, node) for each in value.elts]
            return value
        original = copied(value)
        made: ast.expr = self.visit(value)
        if isinstance(value, ast.IfExp | ast.BoolOp) or not may_hold_letters(original, self.own):
            return made
        return self._local("part", original, made, "result", node)

    # -- checks

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """``assert c, m``, where the call may decide."""
        if not _may_be_asked_again(node):
            return self.generic_visit(node)
        given = [self._condition(node)]
        if node.msg is not None:
            node.msg = self._message(node.msg)
            given.append(thunk(copied(node.msg)))
        node.test = recorder_call("holds", *given, at=node.test)
        return node

    def _yields(self, body: Sequence[ast.stmt]) -> bool:
        return any(isinstance(part, ast.Yield | ast.YieldFrom | ast.Await) for part in self._telling.of(body))

    def _raising(self, body: list[ast.stmt], given: ast.expr) -> list[ast.stmt]:
        # An arm that ends by `raise`, which may be for the program to do.
        last = body[-1] if body else None
        if not isinstance(last, ast.Raise) or last.exc is None or not _may_be_asked_again(last.exc):
            return self._visited(body)
        last.exc = self._message(last.exc)
        asked = recorder_call("raises", copied(given), thunk(copied(last.exc)), at=last)
        made = ast.copy_location(ast.If(asked, [ast.copy_location(ast.Pass(), last)], [last]), last)
        return [*self._visited(body[:-1]), made]

    def _message(self, value: ast.expr) -> ast.expr:
        # What only the call knows is shown as it is written.
        for part in ast.walk(value):
            if isinstance(part, ast.FormattedValue):
                part.value = recorder_call("shown", part.value, ast.Constant(ast.unparse(part.value)), at=part.value)
        made: ast.expr = self.visit(value)
        return made

    def _condition(self, node: ast.While | ast.If | ast.IfExp | ast.Assert) -> ast.expr:
        return thunk(self._connected(node.test, node))

    def _connected(self, test: ast.expr, node: ast.stmt | ast.expr) -> ast.expr:
        # `and`, `or`, `not` and `a < b < c` are the program's where their operands are.
        match test:
            case ast.BoolOp(op, values):
                parts = [thunk(self._connected(each, node)) for each in values]
                statement = self._statement_name(LoopStatement((), (CHOICE,), arms=True))
                return recorder_call("all_of" if isinstance(op, ast.And) else "any_of", statement, *parts, at=test)
            case ast.UnaryOp(ast.Not(), operand):
                return recorder_call("negation", self._connected(operand, node), at=test)
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr() as op, right):
                sides = self._connected(left, node), op, self._connected(right, node)
                return ast.copy_location(ast.BinOp(*sides), test)
            case ast.Compare(left, ops, others) if _calls(*others[:-1]):
                first = self._part(left, "condition", node)
                return ast.fix_missing_locations(self._chain(first, ops, others, test, node))
            case ast.Compare(left, [ast.In() | ast.NotIn() as op], [container]):
                either = (self._part(each, "condition", node) for each in (left, container))
                found = recorder_call("is_among", *either, at=test)
                return found if isinstance(op, ast.In) else recorder_call("negation", found, at=test)
            case ast.Compare(left, ops, others) if len(ops) > 1:
                pairs = zip((left, *others), ops, others, strict=False)
                each = [ast.Compare(copied(one), [op], [copied(other)]) for one, op, other in pairs]
                return self._connected(
                    ast.copy_location(ast.BoolOp(ast.And(), [ast.copy_location(part, test) for part in each]), test),
                    node,
                )
        return self._part(test, "condition", node)

    def _chain(
        self,
        left: ast.expr,
        ops: Sequence[ast.cmpop],
        others: Sequence[ast.expr],
        test: ast.expr,
        node: ast.stmt | ast.expr,
    ) -> ast.expr:
        # What stands between two signs is evaluated once, as the parameter of a function; what comes after it only if
        # it is asked for. Each part is rewritten for itself: statements know nothing of the parameter.
        right = self._part(others[0], "condition", node)
        if len(others) == 1:
            return ast.copy_location(ast.Compare(left, [ops[0]], [right]), test)
        middle = f"_middle_{len(others)}"
        own = ast.copy_location(ast.Name(middle, ast.Load()), right)
        first = ast.copy_location(ast.Compare(left, [ops[0]], [own]), test)
        statement = self._statement_name(LoopStatement((), (CHOICE,), arms=True))
        parts = thunk(first), thunk(self._chain(own, ops[1:], others[1:], test, node))
        parameters = ast.arguments([], [ast.arg(middle)], None, [], [], None, [])
        body = recorder_call("all_of", statement, *parts, at=test)
        return ast.copy_location(ast.Call(ast.Lambda(parameters, body), [right], []), test)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        """``match``, which is Python's: what is matched must not be data."""
        kinds = ast.MatchSingleton | ast.MatchClass
        self.generic_visit(node)
        if any(isinstance(part, kinds) for case in node.cases for part in ast.walk(case.pattern)):
            # Python compares these by what they are: no symbolic value is `True`.
            node.subject = recorder_call("matched", node.subject, at=node.subject)
        return node

    def _visited(self, body: Sequence[ast.stmt], around: bool = True) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        self._around += around
        for statement in body:
            new = self.visit(statement)
            made.extend(new if isinstance(new, list) else [new])
        self._around -= around
        return made

    def _rounds(
        self,
        node: ast.For,
        statement: LoopStatement,
        method: str,
        arguments: Sequence[ast.expr],
        place: ast.expr,
        left: str = "",
        given: ast.expr | None = None,
    ) -> list[ast.stmt]:
        # `node`, rewritten but for what it iterates over, which stands at `place`. A true `left` ends it.
        given = self._statement_name(statement) if given is None else given
        self.loops = True

        def ask(method: str, *arguments: ast.expr) -> ast.expr:
            return recorder_call(method, copied(given), *arguments, at=place)

        node.iter = ask(method, *arguments)
        if statement.names:
            begin = self._store(statement.names, ask("carried"), node, several=True)
            node.body.insert(0, ast.If(ask("runs"), [begin], []))
        if left:
            leaving = ask("leaves", ast.Name(left, ast.Load()))
            node.body.append(ast.If(leaving, [ast.Break()], []))
        names = (*statement.numbers, *statement.names)
        after = self._store(names, ask("after"), node, several=True)
        last: ast.stmt = ast.If(ask("has_run"), [after], [])
        # Going on to another round is at the place of the loop in Python 3.11 and 3.12, later at that of its iterable.
        return [ast.copy_location(node, place), ast.copy_location(last, node)]


def as_branch(node: ast.Assign) -> ast.If:
    """``y = a if c else b`` as a statement: ``if c: y = a`` and ``else: y = b``."""
    value = node.value
    assert isinstance(value, ast.IfExp)

    def arm(part: ast.expr) -> list[ast.stmt]:
        return [ast.copy_location(ast.Assign([copied(each) for each in node.targets], part), node)]

    return ast.copy_location(ast.If(value.test, arm(value.body), arm(value.orelse)), node)


def loop_statement(
    body: Sequence[ast.stmt], first: Mapping[str, ast.stmt], loop: ast.For | ast.While | None = None, left: str = ""
) -> LoopStatement:
    """What the recorder is told of a loop, or of the arms of a branch, before it is rewritten.

    ``first`` are the statements that store into names first; ``left`` is the name that says whether a round was left by
    ``break``.
    """
    bindings = bindings_of(body)
    numbers: list[str] = []
    if isinstance(loop, ast.For):
        numbers = list(dict.fromkeys(part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)))
    bound = {*bindings.bound, *bindings.assigned, *bindings.augmented, *bindings.targets, *bindings.sizes}
    adds = {
        name: each
        for name, each in first.items()
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Subscript) and name not in numbers
    }
    names = tuple(sorted(bound.difference(numbers, (left,))))
    otherwise = loop is not None and bool(loop.orelse)
    leaves = tuple(_leaves(body))
    parts = parts_of(loop.target) if isinstance(loop, ast.For) else None
    return LoopStatement(
        tuple(numbers),
        names,
        leaves,
        otherwise,
        loop is None,
        bool(left),
        isinstance(loop, ast.While),
        adds,
        parts=parts,
    )


def _stored_parts(target: ast.expr) -> Iterator[ast.expr]:
    # The attributes and subscripts that a target, or one in it, stores into.
    match target:
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for each in targets:
                yield from _stored_parts(each)
        case ast.Starred(value=value):
            yield from _stored_parts(value)
        case ast.Attribute() | ast.Subscript():
            yield target


def _first_stores(parts: Iterable[ast.AST]) -> dict[str, ast.stmt]:
    # For each name the statement that stores into it, or binds it, first.
    found = [each for each in parts if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign)]
    first: dict[str, ast.stmt] = {}
    for statement in sorted(found, key=lambda each: (each.lineno, each.col_offset)):
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            inner = target.value if isinstance(target, ast.Subscript) else target
            for part in ast.walk(inner):
                if isinstance(part, ast.Name):
                    first.setdefault(part.id, statement)
    return first


def _renewed(body: list[ast.stmt], bound: Collection[str]) -> Iterator[tuple[str, list[ast.stmt]]]:
    # The targets whose first statement of the body, or of a loop in it, is a plain `=` on points of index variables,
    # which does not read them: with the round's number in the index list, rounds write parts of one target. Each with
    # the body, or the arm in it that alone writes it.
    met: set[str] = set()
    for statement in body:
        parts = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        names = [part.id for part in parts]
        match statement:
            case ast.Assign([ast.Subscript(ast.Name(name), index)]) if name not in met and names.count(name) == 1:
                if not any(isinstance(part, ast.Name) and part.id in bound for part in ast.walk(index)):
                    yield name, body
            case ast.For(iter=asked) | ast.While(test=asked):
                stored = {part.id for part in parts if isinstance(part.ctx, ast.Store)}
                inner = _not_named(_renewed(statement.body, {*bound, *stored}), met, asked)
                yield from ((name, body if block is statement.body else block) for name, block in inner)
                yield from _not_named(_renewed(statement.orelse, bound), met, asked, *statement.body)
            case ast.If(asked, then, otherwise):
                arms = [list(_not_named(_renewed(arm, bound), met, asked)) for arm in (then, otherwise)]
                one, other = ({name for name, block in arm if block in (then, otherwise)} for arm in arms)
                yield from ((name, body if name in one & other else block) for name, block in (*arms[0], *arms[1]))
            case ast.Match(asked, cases):
                for case in cases:
                    yield from _not_named(_renewed(case.body, bound), met, asked)
            case ast.With(inside, within):
                inner = _not_named(_renewed(within, bound), met, *inside)
                yield from ((name, body if block is within else block) for name, block in inner)
            case ast.Try(within, handlers, then, finally_) | ast.TryStar(within, handlers, then, finally_):
                # What stands first surely runs, and so does what stands last.
                before: list[ast.stmt] = []
                for part in (within, *(handler.body for handler in handlers), then, finally_):
                    inner = _not_named(_renewed(part, bound), met, *before)
                    surely = part is within or part is finally_
                    yield from ((name, body if surely and block is part else block) for name, block in inner)
                    before += part
        met.update(names)


def _not_named(
    found: Iterable[tuple[str, list[ast.stmt]]], met: Collection[str], *asked: ast.AST
) -> Iterator[tuple[str, list[ast.stmt]]]:
    # Those of targets whose names what stands before has not met, nor what a loop or a branch asks.
    named = {*met, *(part.id for each in asked for part in ast.walk(each) if isinstance(part, ast.Name))}
    return ((name, block) for name, block in found if name not in named)


def _leaves(body: Sequence[ast.stmt], inner: bool = False) -> Iterator[ast.stmt]:
    # What leaves the rounds of a loop early, or an arm of a branch.
    for statement in body:
        if isinstance(statement, ast.Return) or (isinstance(statement, ast.Break | ast.Continue) and not inner):
            yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        within = inner or isinstance(statement, ast.For | ast.While)
        for part in ("body", "orelse", "finalbody"):
            yield from _leaves(getattr(statement, part, ()), within)
        for block in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _leaves(block.body, within)


def _may_be_asked_again(test: ast.expr | ast.Assert) -> bool:
    # Whether a condition can stand in a function of its own, which binds nothing.
    return not any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in ast.walk(test))


def _calls(*parts: ast.expr) -> bool:
    # Whether it matters how often they are evaluated.
    return any(isinstance(inner, ast.Call) for part in parts for inner in ast.walk(part))
