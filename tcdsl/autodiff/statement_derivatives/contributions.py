"""What the derivative by a tensor is the sum of, until all of it is known."""

from __future__ import annotations

from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Constant, Expr, Read, walk
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, Keep, Neutral, Start, Statement, Tensor, tensors_read
from tcdsl.polyhedra.boxes import is_over_box
from tcdsl.polyhedra.index_variables import positional, renamed, targets_first
from tcdsl.polyhedra.scatter_to_gather import solve
from tcdsl.polyhedra.writes import affine_target, writes_each_cell_once
from tcdsl.simplification.expressions.tape import shared
from tcdsl.simplification.sparsity.compaction import compacted
from tcdsl.simplification.sparsity.sparse_reads import is_sparse

__all__ = ["Contributions"]


# Derivatives with more thin parts are stored: each reader is written once per part.
_MOST_PARTS = 32
# One pass over memory follows so many arrays at once; a loop over more of them, such as all states of a simulation,
# has the processor fetch blindly, and takes long to compile.
_MOST_ARRAYS = 8
# More sums than these are taken along the way, each as soon as it can be.
_MOST_AT_ONCE = 4


def _is_thin(statement: Statement, rank: int) -> bool:
    value = statement.value
    uniform = isinstance(value, Constant) or (isinstance(value, Read) and not value.indices)
    return is_sparse(statement, rank) or (uniform and is_sparse(statement, len(statement.domain.variables) + 1))


def _sum(statements: list[Statement]) -> Statement:
    # Statements that differ in their values and in the names of their variables only.
    first = statements[0]
    if len(statements) == 1:
        return first
    values = [renamed(statement, first.domain.variables).value for statement in statements]
    # In pairs: a thousand terms are ten levels deep.
    while len(values) > 1:
        pairs = [apply("add", *values[k : k + 2]) for k in range(0, len(values) - 1, 2)]
        values = pairs + values[len(pairs) * 2 :]
    return replace(first, value=shared(values[0]))


def _arrays(statement: Statement) -> frozenset[str]:
    return frozenset(part.tensor for part in walk(statement.value) if isinstance(part, Read) and part.indices)


def _passes(statements: list[Statement]) -> list[list[Statement]]:
    # Runs of statements that together read few arrays.
    passes: list[list[Statement]] = []
    known: frozenset[str] = frozenset()
    for statement in statements:
        arrays = _arrays(statement)
        if not passes or len(known | arrays) > _MOST_ARRAYS:
            passes.append([])
            known = frozenset()
        passes[-1].append(statement)
        known |= arrays
    return passes


def _as_store(statement: Statement) -> Statement:
    # The first contribution to cells that it writes once each is stored, not added to zeros.
    if isinstance(statement.start, Neutral) and affine_target(statement) and writes_each_cell_once(statement):
        return replace(statement, accumulate="assign")
    return statement


class Contributions:
    """Statements that add to ``d_X`` and whole tensors that are added to it, for each tensor X.

    The statements' targets name X itself; `total` makes the adjoint tensors.
    """

    def __init__(self, owner: Derivative) -> None:
        self._owner = owner
        #: The statements that made a derivative, for those that are zero but on thin sets.
        self.sparse: dict[str, tuple[Statement, ...]] = {}
        self._statements: dict[str, list[Statement]] = {}
        self._wholes: dict[str, list[str]] = {}

    def add(self, tensor: str, statement: Statement) -> None:
        """Add a statement that accumulates onto the derivative by ``tensor``."""
        whole = self._whole(tensor, statement)
        if whole is None:
            self._statements.setdefault(tensor, []).append(statement)
        else:
            self.add_whole(tensor, whole)

    def add_whole(self, tensor: str, adjoint: str) -> None:
        """Add all cells of ``adjoint``, a tensor of the same shape, to the derivative by ``tensor``."""
        self._wholes.setdefault(tensor, []).append(adjoint)

    def settle(self, read: str) -> None:
        """Make what reads the tensor ``read`` now: a version with other cells is about to be made in its place."""
        for tensor, statements in list(self._statements.items()):
            if any(read in tensors_read(statement) for statement in statements):
                total = self.total(tensor, f"d_{tensor}")
                assert total is not None
                self.add_whole(tensor, total)

    def total(self, tensor: str, hint: str) -> str | None:
        """The name of the derivative by ``tensor``, made now; ``None`` if nothing contributes."""
        wholes = self._wholes.pop(tensor, [])
        statements = self._merged(self._statements.pop(tensor, []))
        declared = self._owner.tensor(tensor)
        if len(wholes) > 1 or (wholes and any(is_over_box(s, declared.shape) for s in statements)):
            copies = [self._owner.added(self._owner.tensor(name), tensor) for name in wholes]
            statements = self._merged([*copies, *statements])
            wholes = []
        statements.sort(key=lambda statement: not is_over_box(statement, declared.shape))
        current = wholes[0] if wholes else None
        earlier = () if current is None else self.sparse.get(current)
        parts: list[Statement] = []
        for statement in statements:
            start: Start = Neutral() if current is None else Keep(current)
            current = self._declare(declared, hint)
            target = Access(current, statement.target.indices, statement.target.span)
            made = replace(statement, target=target, start=start)
            parts.extend(map(_as_store, solve(made, lambda _: self._declare(declared, hint))))
        if current is not None and earlier is not None and not self._owner.is_input(tensor):
            parts = self._kept_sparse(current, earlier, parts, hint)
        for part in parts:
            if len(statements) > _MOST_AT_ONCE:
                self._owner.place(part)
            else:
                self._owner.append(part)
        return current

    def _kept_sparse(
        self, current: str, earlier: tuple[Statement, ...], parts: list[Statement], hint: str
    ) -> list[Statement]:
        """``parts``, which add up to the derivative ``current`` together with ``earlier`` ones; notes if all are thin.

        The values of a thin part that takes work are computed once, however many statements read them.
        """
        if not 0 < len(earlier) + len(parts) <= _MOST_PARTS:
            return parts
        made: list[tuple[Statement, ...]] = []
        for part in parts:
            tensor = self._owner.tensor(part.target.tensor)
            if _is_thin(part, len(tensor.shape)):
                made.append((part,))
                continue

            def declare(shape: tuple[Expr, ...], like: Tensor = tensor) -> Tensor:
                return self._owner.tensor(self._owner.declare(f"{hint}_cells", like.dtype, shape))

            found = compacted(part, tensor, self._owner.context, declare)
            if found is None:
                return parts
            made.append(found)
        self.sparse[current] = (*earlier, *(written[-1] for written in made))
        return [statement for written in made for statement in written]

    def _declare(self, tensor: Tensor, hint: str) -> str:
        return self._owner.declare(hint, compute_dtype(tensor.dtype), tensor.shape)

    def _whole(self, tensor: str, statement: Statement) -> str | None:
        # The tensor whose cells a statement adds, one for one.
        value = statement.value
        declared = self._owner.tensor(tensor)
        if not isinstance(value, Read) or value.indices != statement.target.indices:
            return None
        source = self._owner.tensor(value.tensor)
        if source.shape != declared.shape or source.dtype != compute_dtype(declared.dtype):
            return None
        return value.tensor if is_over_box(statement, declared.shape) else None

    def _merged(self, statements: list[Statement]) -> list[Statement]:
        """One statement for all that add at the same cells from the same points, as far as one pass can read them."""
        statements = list(map(targets_first, statements))
        if len(statements) < 2:
            return statements
        groups: dict[object, list[Statement]] = {}
        for statement in statements:
            common = positional(statement)
            key = (common.target.indices, common.domain, common.condition, common.oob)
            groups.setdefault(key, []).append(statement)
        return [_sum(run) for group in groups.values() for run in _passes(group)]
