"""Programs in the language of Tensor Comprehensions beside what NumPy makes of the same arrays."""

from __future__ import annotations

import numpy as np

__all__ = ["PROGRAMS", "Program"]

from tests.comprehensions.layer_programs import PROGRAMS, Program, program

__all__ = ["PROGRAMS", "Program"]

# -- ranges ----------------------------------------------------------------------------------------------------------

program(
    "the smaller of two extents",
    "def f(float(N) A, float(M) B) -> (C) { C(i) = A(i) + B(i) }",
    ((5,), (3,)),
    lambda A, B: A[:3] + B,
)
program(
    "the smallest of many extents",
    "def f(" + ", ".join(f"float(N{k}) A{k}" for k in range(9)) + ") -> (C) { "
    "C(i) = " + " + ".join(f"A{k}(i)" for k in range(9)) + " }",
    tuple((3 + k % 4,) for k in range(9)),
    lambda *given: sum(each[:3] for each in given),
)
program(
    "a range that begins above 0",
    "def f(float(N) A) -> (C) { C(i) = A(i - 2) }",
    ((4,),),
    lambda A: np.concatenate([[0, 0], A]),
)
program(
    "what is written bounds what is read",
    """def f(float(N) A) -> (C, D, E) {
        C(i) = A(i - 2)
        D(i) = exp(C(i))
        E(i) = exp(C(i)) where i in 0:N
    }""",
    ((4,),),
    lambda A: (
        np.concatenate([[0, 0], A]),
        np.concatenate([[0, 0], np.exp(A)]),
        np.concatenate([[1, 1], np.exp(A[:2])]),
    ),
)
program(
    "neutral cells below a range",
    "def f(float(N, M) A) -> (C) { C(i) max=! A(i, k) where i in 1:N }",
    ((4, 3),),
    lambda A: np.concatenate([[-np.inf], A.max(1)[1:]]),
    differentiable=False,
)
program(
    "rounds",
    "def f(float(N) I, float(K) W, float(L) V) -> (O) { O(n) +=! I(n + k + l) * W(k) * V(l) }",
    ((8,), (3,), (2,)),
    lambda I, W, V: np.correlate(np.correlate(I, W, "valid"), V, "valid"),
)
program(
    "exists bounds a range",
    "def f(float(N, M) A) -> (C) { C(i) +=! 1.0 where exists A(i, k) }",
    ((3, 4),),
    lambda A: np.full(3, 4.0),
    differentiable=False,
)
program(
    "exists narrows a range",
    "def f(float(N) A, float(M) B) -> (C) { C(i) = 2 * A(i) where exists B(i + 1) }",
    ((6,), (4,)),
    lambda A, B: 2 * A[:3],
)
program(
    "reversed",
    "def f(float(N) A) -> (C) { C(i) = A(N - 1 - i) }",
    ((5,),),
    lambda A: A[::-1],
)
program(
    "every second cell",
    "def f(float(N) A) -> (C) { C(i) = A(2 * i) }",
    ((7,),),
    lambda A: A[::2],
)
program(
    "repeated by division",
    "def f(float(N) A) -> (C) { C(i) = A(i / 3) where i in 0:3 * N }",
    ((4,),),
    lambda A: np.repeat(A, 3),
)
program(
    "tiled by the rest",
    "def f(float(N) A) -> (C) { C(i) = A(i % N) where i in 0:3 * N }",
    ((4,),),
    lambda A: np.tile(A, 3),
)
program(
    "a diagonal",
    "def f(float(N, M) A) -> (C) { C(i) = A(i, i) }",
    ((3, 5),),
    np.diagonal,
)
program(
    "a lower triangle",
    "def f(float(N, N) A) -> (C) { C(i, j) = j <= i ? A(i, j) : 0.0 }",
    ((4, 4),),
    np.tril,
)
program(
    "prefix sums",
    "def f(float(N) A) -> (C) { C(i) +=! k <= i ? A(k) : 0.0 where i in 0:N }",
    ((5,),),
    np.cumsum,
)
program(
    "bounds of sizes",
    "def f(float(N, M) A) -> (C) { C(i) = A(i, 0) where i in max(0, N - M):min(N, 2 * M) - A.1 / M + 1 - 0 * N % 2 }",
    ((4, 2),),
    lambda A: np.concatenate([[0, 0], A[2:4, 0]]),
)
program(
    "bounds of a choice between sizes",
    "def f(float(N, M) A) -> (C) { C(i) = A(i, 0) where i in 0:(N < M && !(N == M) ? N : M) }",
    ((4, 2),),
    lambda A: A[:2, 0],
)
program(
    "statements of different extents",
    "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) = B(i) }",
    ((3,), (5,)),
    lambda A, B: B,
)
program(
    "a smaller statement leaves the rest",
    "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) = B(i) }",
    ((5,), (3,)),
    lambda A, B: np.concatenate([B, A[3:]]),
)
program(
    "accumulating meets what is there",
    "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) += B(i) }",
    ((5,), (3,)),
    lambda A, B: A + np.pad(B, (0, 2)),
)

# -- operators and values --------------------------------------------------------------------------------------------

program(
    "precedence",
    "def f(float(N) a, float(N) b) -> (C) { C(i) = -a(i) + b(i) * 2 - a(i) / 4 * b(i) - (a(i) - (b(i) - 1)) }",
    ((4,), (4,)),
    lambda a, b: -a + b * 2 - a / 4 * b - (a - (b - 1)),
)
program(
    "logic and comparisons",
    """def f(float(N) a, float(N) b) -> (C, D) {
        C(i) = !(a(i) < b(i)) || a(i) >= 0 && b(i) != 0 || a(i) == b(i)
        D(i) = C(i) ? (a(i) > 0 ? 1 : 2) : a(i) <= b(i) ? 3 : 4
    }""",
    ((6,), (6,)),
    lambda a, b: ((a >= b) | ((a >= 0) & (b != 0)), np.where((a >= b) | (a >= 0), np.where(a > 0, 1, 2), 3)),
    differentiable=False,
)
program(
    "all reductions",
    """def f(float(N, M) A) -> (s, p, lo, hi, s2, p2, lo2, hi2) {
        s(i) +=! A(i, j)    p(i) *=! A(i, j)    lo(i) min=! A(i, j)    hi(i) max=! A(i, j)
        s2(i) = 1.0 where i in 0:N    p2(i) = s2(i)    lo2(i) = s2(i)    hi2(i) = s2(i)
        s2(i) += A(i, j)    p2(i) *= A(i, j)    lo2(i) min= A(i, j)    hi2(i) max= A(i, j)
    }""",
    ((3, 4),),
    lambda A: (
        *(A.sum(1), A.prod(1), A.min(1), A.max(1)),
        *(1 + A.sum(1), A.prod(1), np.minimum(1, A.min(1)), np.maximum(1, A.max(1))),
    ),
    differentiable=True,
    positive=True,
)
program(
    "an operator with ! and no reduction is a store",
    "def f(float(N) A) -> (C) { C(i) = 5.0 where i in 0:N C(i) +=! 2 * A(i) }",
    ((4,),),
    lambda A: 2 * A,
)
program(
    "casts",
    """def f(float(N) a, int32(N) k) -> (C, D, E, F) {
        C(i) = int32(a(i) * 3)
        D(i) = double(a(i)) / 3
        E(i) = float(k(i)) / 2 + half(0.5)
        F(i) = bool(k(i))
    }""",
    ((5,), ((5,), 3)),
    lambda a, k: ((a * 3).astype(np.int32), a.astype(float) / 3, k / 2 + 0.5, k != 0),
    differentiable=False,
)
program(
    "integers divide to the floor",
    "def f(int32(N) a) -> (C, D) { C(i) = (a(i) - 4) / 3 D(i) = (a(i) - 4) % 3 }",
    (((6,), 9),),
    lambda a: ((a - 4) // 3, (a - 4) % 3),
    differentiable=False,
)
program(
    "sizes and indices are values",
    "def f(float(N, M) A) -> (C) { C(i, j) = A(i, j) * N + i * M + j + A.0 where i in 0:N }",
    ((3, 4),),
    lambda A: A * 3 + np.arange(12).reshape(3, 4) + 3,
)
program(
    "numbers",
    "def f(float(N) A) -> (C) { C(i) = 1.5e1f * A(i) + .5 - 2. + 0x1F + 1E-1 + 7 }",
    ((3,),),
    lambda A: 15 * A + 0.5 - 2 + 31 + 0.1 + 7,
)
program(
    "tensors of rank 0",
    """def f(float a, float(N) x) -> (s, t, u) {
        s = a * a
        t() +=! x(i) * s()
        u = t + a()
    }""",
    ((), (4,)),
    lambda a, x: (a * a, x.sum() * a * a, x.sum() * a * a + a),
)
program(
    "sizes that are numbers",
    "def f(float(3, N) A, float(N, 2) B) -> (float(3, 2) C) { C(i, j) +=! A(i, k) * B(k, j) }",
    ((3, 4), (4, 2)),
    lambda A, B: A @ B,
)
program(
    "declared results",
    "def f(float(N) A) -> (double(N) C, float D) { C(i) = A(i) D +=! A(i) }",
    ((4,),),
    lambda A: (A.astype(float), A.sum()),
)
program(
    "local definitions",
    """def f(float(N, M) A) -> (C) {
        C(i) +=! u * u + t where m = A(i, 0), t = A(i, j), u = t - 2 * m, unused = A(j, j)
    }""",
    ((3, 4),),
    lambda A: ((A - 2 * A[:, :1]) ** 2 + A).sum(1),
)
program(
    "annotations and comments",
    """# A comment, with "quotes" and ünïcode.
    def f(float(N) A) -> (C) {   # another
        C(i) = A(i)  <=> copy(A(i)) where i in 0:N   # the last
    } # end""",
    ((4,),),
    lambda A: A,
)
program(
    "an argmin through ternaries",
    """def f(float(N, M) A) -> (lo, at) {
        lo(i) min=! A(i, j)
        at(i) min=! A(i, j) == lo(i) ? j : M
    }""",
    ((4, 5),),
    lambda A: (A.min(1), A.argmin(1)),
    differentiable=False,
)
program(
    "any and all",
    "def f(float(N, M) A) -> (any, all, n) { any(i) max=! A(i, j) > 0 all(i) min=! A(i, j) > 0 n() +=! any(i) }",
    ((4, 2),),
    lambda A: ((A > 0).any(1), (A > 0).all(1), (A > 0).any(1).sum()),
    differentiable=False,
)
program(
    "words of Python as names",
    "def f(float(lambda, class) not, float(lambda) in1) -> (and, or) { and(is) +=! not(is, def1) or(min) = in1(min) }",
    ((2, 3), (2,)),
    lambda A, b: (A.sum(1), b),
)
program(
    "a histogram",
    "def f(int32(N) x, float(B) like) -> (H) { H(b) +=! x(i) == b ? 1 : 0 where b in 0:B }",
    (((20,), 5), (5,)),
    lambda x, like: np.bincount(x, minlength=5),
    differentiable=False,
)
program(
    "data in an index, with arithmetic",
    "def f(float(N) A, int64(M) p) -> (C) { C(i) = A(2 * p(i) + 1) + A(p(p(i))) }",
    ((8,), ((4,), 4, np.int64)),
    lambda A, p: A[2 * p + 1] + A[p[p]],
)
program(
    "a branch on data guards a read",
    "def f(float(N) A, int32(N) k) -> (C) { C(i) = k(i) > 0 ? A(i - 1 + 0 * k(i)) : 0.0 where i in 1:N }",
    ((5,), ((5,), 2)),
    lambda A, k: np.concatenate([[0], np.where(k[1:] > 0, A[:-1], 0)]),
)
program(
    "small types",
    """def f(uint8(N) a, int8(N) b, int16(N) c, uint32(N) d, bool(N) e, half(N) h) -> (C, D, E, F) {
        C(i) = a(i) + b(i)
        D(i) = c(i) * d(i)
        E() +=! e(i)
        F(i) = h(i) * 2
    }""",
    (
        ((4,), 9, np.uint8),
        ((4,), 9, np.int8),
        ((4,), 9, np.int16),
        ((4,), 9, np.uint32),
        ((4,), 2, np.bool_),
        ((4,), 9, np.float16),
    ),
    lambda a, b, c, d, e, h: (a.astype(int) + b, c * d.astype(int), e.sum(), 2 * h),
    differentiable=False,
)
program(
    "a type that several statements give",
    "def f(float(N) A) -> (C) { C() = 0 C() += A(i) }",
    ((4,),),
    lambda A: A.sum(),
)
program(
    "polynomials and stencils",
    "def f(float(N) u) -> (v) { v(i) = u(i) + 0.1 * (u(i - 1) - 2 * u(i) + u(i + 1)) where i in 1:N - 1 }",
    ((6,),),
    lambda u: np.concatenate([[0], u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])]),
)
program(
    "several results of a definition",
    """def f(float(N, M) A) -> (lo, hi, w) { lo, hi = ends(A) w(i) = hi(i) - lo(i) }
    def ends(float(N, M) A) -> (lo, hi) { lo(i) min=! A(i, j) hi(i) max=! A(i, j) }""",
    ((3, 4),),
    lambda A: (A.min(1), A.max(1), A.max(1) - A.min(1)),
)
program(
    "a chain of definitions",
    """def scaled(float(N) A, float s) -> (B) { B(i) = s * A(i) }
    def norm(float(N) A) -> (n) { n() +=! A(i) * A(i) n = rsqrt(n()) }
    def f(float(N, M) A) -> (flat, n, B) {
        flat(i) = A(i / M, i % M) where i in 0:N * M
        n = norm(flat)
        B = scaled(flat, n)
    }""",
    ((2, 3),),
    lambda A: (A.ravel(), 1 / np.linalg.norm(A), A.ravel() / np.linalg.norm(A)),
)
