"""Linear forms with symbolic coefficients: what range inference does arithmetic on.

``i*P + p - K // 2`` is the form ``{i·P: 1, p: 1, (K // 2): -1}``: integers times products of sizes, times at most
one index variable. Unlike the linear forms of `tcdsl.polyhedra.linear` they multiply, so that ``(N - 1)*P + P - 1 +
1`` is seen to be ``N*P``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd

from tcdsl.ir.expressions import Expr, IndexValue, SizeValue, index_variables
from tcdsl.polyhedra.affine import NotAffine

__all__ = ["Monomial", "Polynomial", "SizeTerm"]

# A product of sizes (or of quasi-affine expressions of sizes), sorted; the empty product is 1.
Monomial = tuple[Expr, ...]
# What a coefficient stands before: an index variable, or a quasi-affine expression of some, or None; times a monomial.
SizeTerm = tuple[Expr | None, Monomial]

_ONE: SizeTerm = (None, ())


def _order(atom: Expr) -> tuple[int, str]:
    return (0, atom.name) if isinstance(atom, SizeValue) else (1, repr(atom))


def divided(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """``monomial / divisor`` if that is a product of sizes again, else None."""
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of integer multiples of terms: ``Form.of(IndexValue("i")) * 2 + 1`` is ``2*i + 1``.

    Equal forms are equal expressions; the converse holds for polynomials. Multiplication raises `NotAffine` where both
    factors hold index variables.
    """

    terms: Mapping[SizeTerm, int]

    @staticmethod
    def number(value: int) -> Polynomial:
        """A constant."""
        return Polynomial({_ONE: value} if value else {})

    @staticmethod
    def of(atom: Expr) -> Polynomial:
        """An index variable, a size, or any expression of either that is not linear, standing for itself."""
        if index_variables(atom):
            return Polynomial({(atom, ()): 1})
        return Polynomial({(None, (atom,)): 1})

    def __add__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            other = Polynomial.number(other)
        terms = dict(self.terms)
        for term, scale in other.terms.items():
            total = terms.get(term, 0) + scale
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial({term: -scale for term, scale in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + (-other)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            return Polynomial({term: scale * other for term, scale in self.terms.items()} if other else {})
        total = Polynomial({})
        for (left, first), scale in self.terms.items():
            for (right, second), factor in other.terms.items():
                if left is not None and right is not None:
                    raise NotAffine(left)
                product = (left if right is None else right, tuple(sorted((*first, *second), key=_order)))
                total += Polynomial({product: scale * factor})
        return total

    @property
    def constant(self) -> int:
        """The number added to the terms."""
        return self.terms.get(_ONE, 0)

    @property
    def value(self) -> int | None:
        """The number that this form is, if it is one."""
        if not self.terms:
            return 0
        return self.constant if self.terms.keys() == {_ONE} else None

    @property
    def variables(self) -> frozenset[str]:
        """The names of the index variables."""
        return frozenset().union(*(index_variables(atom) for atom, _ in self.terms if atom is not None))

    @property
    def bare(self) -> str | None:
        """The index variable that this form is, if it is one."""
        if len(self.terms) == 1:
            ((atom, monomial), scale), *_ = self.terms.items()
            if isinstance(atom, IndexValue) and not monomial and scale == 1:
                return atom.name
        return None

    @property
    def quasi_affine(self) -> bool:
        """Whether no index variable is multiplied by a size."""
        return all(atom is None or not monomial for atom, monomial in self.terms)

    def linear_in(self, variable: str) -> bool:
        """Whether ``variable`` stands in terms of its own only, not inside ``//``, ``%``, ``min`` or ``max``."""
        return all(
            isinstance(atom, IndexValue) or variable not in index_variables(atom)
            for atom, _ in self.terms
            if atom is not None
        )

    def coefficient(self, variable: str) -> Polynomial:
        """The factor of an index variable, a form of sizes."""
        return Polynomial({(None, m): s for (atom, m), s in self.terms.items() if atom == IndexValue(variable)})

    def without(self, variable: str) -> Polynomial:
        """The form with 0 for an index variable in which it is linear."""
        return Polynomial({(atom, m): s for (atom, m), s in self.terms.items() if atom != IndexValue(variable)})

    def substituted(self, atom: Expr, value: Polynomial) -> Polynomial:
        """The form with ``value`` for every factor ``atom``."""
        total = Polynomial({})
        for (variable, monomial), scale in self.terms.items():
            product = Polynomial({(variable, tuple(factor for factor in monomial if factor != atom)): scale})
            for factor in monomial:
                if factor == atom:
                    product = product * value
            total += product
        return total

    def split(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """Quotient and rest, ``self == quotient * divisor + rest``, by the terms that ``divisor``, one term, divides.

        None if ``divisor`` is not one positive multiple of a monomial.
        """
        if len(divisor.terms) != 1:
            return None
        (((atom, monomial), factor),) = divisor.terms.items()
        if atom is not None or factor <= 0:
            return None
        quotient: dict[SizeTerm, int] = {}
        rest: dict[SizeTerm, int] = {}
        for (variable, product), scale in self.terms.items():
            left = divided(product, monomial)
            whole = 0
            if left is not None and (scale % factor == 0 or (variable, product) == _ONE):
                whole = scale // factor
                quotient[(variable, left)] = whole
            if scale - whole * factor:
                rest[(variable, product)] = scale - whole * factor
        return Polynomial({term: scale for term, scale in quotient.items() if scale}), Polynomial(rest)

    def divided_by(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Quotient and rest by a sum of sizes: ``i*N + i + j`` by ``N + 1`` is ``i``, and ``j`` is left.

        What index variables stand before is divided where nothing is left of it.
        """
        quotient, rest = Polynomial({}), Polynomial({})
        for atom in dict.fromkeys(atom for atom, _ in self.terms):
            factor = Polynomial({(None, m): scale for (of, m), scale in self.terms.items() if of == atom})
            whole, left = _long_division(factor, divisor)
            if atom is not None and left.terms:
                whole, left = Polynomial({}), factor
            before = Polynomial.number(1) if atom is None else Polynomial({(atom, ()): 1})
            quotient, rest = quotient + before * whole, rest + before * left
        return quotient, rest

    def sums_before_variables(self) -> list[Polynomial]:
        """The factors of index variables that are sums of sizes, the shortest first: ``N + 1`` of ``i*N + i + j``.

        Each of them comes with its negative: which one is positive, others know.
        """
        factors = (self.coefficient(name) for name in sorted(self.variables) if self.linear_in(name))
        sums = sorted((each for each in factors if len(each.terms) > 1), key=lambda each: len(each.terms))
        return [signed for each in sums for signed in (each, -each)]

    def stride(self) -> Polynomial | None:
        """The smallest product of sizes, times an integer, that index variables are multiplied by.

        None unless it divides all such products: ``i*P*Q + p*Q + q`` has the stride ``Q``, ``x*S + k*D`` has none.
        """
        products = [
            (monomial, scale) for (atom, monomial), scale in self.terms.items() if atom is not None and monomial
        ]
        least = min((monomial for monomial, _ in products), key=len, default=())
        if not least or any(divided(monomial, least) is None for monomial, _ in products):
            return None
        return Polynomial({(None, least): gcd(*(scale for _, scale in products))})

    def sizes(self) -> Iterator[Expr]:
        """The sizes and expressions of sizes in the terms."""
        for _, monomial in self.terms:
            yield from monomial


def _long_division(form: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    # Of forms of sizes alone, by the leading term of the divisor: the longest product, the last of several.
    def rank(term: SizeTerm) -> tuple[int, list[tuple[int, str]]]:
        return len(term[1]), list(map(_order, term[1]))

    lead = max(divisor.terms, key=rank)
    quotient, rest = Polynomial({}), Polynomial({})
    while form.terms:
        term = max(form.terms, key=rank)
        whole, over = divmod(form.terms[term], divisor.terms[lead])
        left = divided(term[1], lead[1])
        if left is None or over:
            taken = Polynomial({term: form.terms[term]})
            rest, form = rest + taken, form - taken
        else:
            taken = Polynomial({(None, left): whole})
            quotient, form = quotient + taken, form - taken * divisor
    return quotient, rest
