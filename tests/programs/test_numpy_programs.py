"""Programs as one writes them for NumPy, with arrays that are allocated and filled in loops: they run as they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

GENERATOR = np.random.default_rng(1)


def thomas(a, b, c, d):
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    x = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def householder(A):
    m = A.shape[0]
    n = A.shape[1]
    Rm = A.copy()
    Q = np.eye(m)
    for k in range(n):
        x = np.zeros(m)
        for i in range(k, m):
            x[i] = Rm[i, k]
        s = np.sqrt(np.sum(x * x))
        alpha = -s if x[k] > 0 else s
        v = x.copy()
        v[k] = v[k] - alpha
        nv = np.sum(v * v)
        if nv > 1e-30:
            Rm = Rm - 2 * np.outer(v, v @ Rm) / nv
            Q = Q - 2 * np.outer(Q @ v, v) / nv
    return Q, Rm


def sieve(n):
    is_p = np.ones(n + 1, dtype=bool)
    is_p[0] = False
    is_p[1] = False
    i = 2
    while i * i <= n:
        if is_p[i]:
            for j in range(i * i, n + 1, i):
                is_p[j] = False
        i += 1
    return is_p


def dijkstra(W, s):
    n = W.shape[0]
    dist = np.full(n, np.inf)
    done = np.zeros(n, dtype=bool)
    dist[s] = 0.0
    for _ in range(n):
        u = -1
        best = np.inf
        for v in range(n):
            if not done[v] and dist[v] < best:
                best = dist[v]
                u = v
        if u < 0:
            break
        done[u] = True
        for v in range(n):
            if dist[u] + W[u, v] < dist[v]:
                dist[v] = dist[u] + W[u, v]
    return dist


def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n))
    for l in range(2, n + 1):
        for i in range(n - l + 1):
            j = i + l - 1
            m[i, j] = np.inf
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
    return m[0, n - 1]


def runge_kutta(y0, t1, tol):
    t = 0.0
    y = y0
    h = 0.1
    n = 0
    while t < t1 and n < 1000:
        if t + h > t1:
            h = t1 - t
        k1 = -y + np.sin(t)
        k2 = -(y + h * k1 / 2) + np.sin(t + h / 2)
        k3 = -(y + h * 3 * k2 / 4) + np.sin(t + h * 3 / 4)
        yn = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = -yn + np.sin(t + h)
        err = abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8))
        if err < tol:
            t = t + h
            y = yn
        h = h * min(5.0, max(0.2, 0.9 * (tol / (err + 1e-14)) ** (1 / 3)))
        n += 1
    return y, n


def fourier(re, im):
    n = len(re)
    re = re.copy()
    im = im.copy()
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j = j ^ bit
            bit = bit >> 1
        j = j ^ bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    size = 2
    while size <= n:
        half = size // 2
        for start in range(0, n, size):
            for k in range(half):
                ang = -2 * np.pi * k / size
                wr = np.cos(ang)
                wi = np.sin(ang)
                a = start + k
                b = a + half
                tr = wr * re[b] - wi * im[b]
                ti = wr * im[b] + wi * re[b]
                re[b] = re[a] - tr
                im[b] = im[a] - ti
                re[a] = re[a] + tr
                im[a] = im[a] + ti
        size = size * 2
    return re, im


def game_of_life(g, n):
    for _ in range(n):
        new = np.zeros_like(g)
        for i in range(g.shape[0]):
            for j in range(g.shape[1]):
                s = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            a = i + di
                            b = j + dj
                            if a >= 0 and a < g.shape[0] and b >= 0 and b < g.shape[1]:
                                s += g[a, b]
                if s == 3 or (s == 2 and g[i, j] == 1):
                    new[i, j] = 1
        g = new
    return g


def gmres(A, b):
    n = len(b)
    m = n
    Q = np.zeros((m + 1, n))
    H = np.zeros((m + 1, m))
    beta = np.sqrt(np.sum(b * b))
    Q[0] = b / beta
    cs = np.zeros(m)
    sn = np.zeros(m)
    g = np.zeros(m + 1)
    g[0] = beta
    for k in range(m):
        w = A @ Q[k]
        for i in range(k + 1):
            H[i, k] = np.sum(Q[i] * w)
            w = w - H[i, k] * Q[i]
        H[k + 1, k] = np.sqrt(np.sum(w * w))
        if H[k + 1, k] > 1e-12:
            Q[k + 1] = w / H[k + 1, k]
        for i in range(k):
            t = cs[i] * H[i, k] + sn[i] * H[i + 1, k]
            H[i + 1, k] = -sn[i] * H[i, k] + cs[i] * H[i + 1, k]
            H[i, k] = t
        r = np.sqrt(H[k, k] ** 2 + H[k + 1, k] ** 2)
        cs[k] = H[k, k] / r
        sn[k] = H[k + 1, k] / r
        H[k, k] = r
        H[k + 1, k] = 0.0
        g[k + 1] = -sn[k] * g[k]
        g[k] = cs[k] * g[k]
    y = np.zeros(m)
    for i in range(m - 1, -1, -1):
        s = g[i]
        for j in range(i + 1, m):
            s = s - H[i, j] * y[j]
        y[i] = s / H[i, i]
    x = np.zeros(n)
    for j in range(m):
        x = x + y[j] * Q[j]
    return x


def jacobi_eigenvalues(A, sweeps):
    n = A.shape[0]
    A = A.copy()
    V = np.eye(n)
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) > 1e-14:
                    th = (A[q, q] - A[p, p]) / (2 * A[p, q])
                    t = (1.0 if th >= 0 else -1.0) / (abs(th) + np.sqrt(th * th + 1))
                    c = 1 / np.sqrt(t * t + 1)
                    s = t * c
                    for k in range(n):
                        akp = A[k, p]
                        akq = A[k, q]
                        A[k, p] = c * akp - s * akq
                        A[k, q] = s * akp + c * akq
                    for k in range(n):
                        apk = A[p, k]
                        aqk = A[q, k]
                        A[p, k] = c * apk - s * aqk
                        A[q, k] = s * apk + c * aqk
                    for k in range(n):
                        vkp = V[k, p]
                        vkq = V[k, q]
                        V[k, p] = c * vkp - s * vkq
                        V[k, q] = s * vkp + c * vkq
    d = np.zeros(n)
    for k in range(n):
        d[k] = A[k, k]
    return d


def kmeans(X, C, iters):
    n = X.shape[0]
    k = C.shape[0]
    lab = np.zeros(n, dtype=np.int64)
    for _ in range(iters):
        for i in range(n):
            best = np.inf
            for j in range(k):
                d = np.sum((X[i] - C[j]) ** 2)
                if d < best:
                    best = d
                    lab[i] = j
        S = np.zeros_like(C)
        cnt = np.zeros(k)
        for i in range(n):
            S[lab[i]] = S[lab[i]] + X[i]
            cnt[lab[i]] += 1
        for j in range(k):
            if cnt[j] > 0:
                C[j] = S[j] / cnt[j]
    return C, lab


def expectation_maximization(x, mu, iters):
    k = len(mu)
    n = len(x)
    sig = np.ones(k)
    pi = np.ones(k) / k
    for _ in range(iters):
        r = np.zeros((n, k))
        for i in range(n):
            tot = 0.0
            for j in range(k):
                r[i, j] = pi[j] * np.exp(-0.5 * ((x[i] - mu[j]) / sig[j]) ** 2) / sig[j]
                tot += r[i, j]
            r[i] = r[i] / tot
        for j in range(k):
            w = np.sum(r[:, j])
            mu[j] = np.sum(r[:, j] * x) / w
            sig[j] = np.sqrt(np.sum(r[:, j] * (x - mu[j]) ** 2) / w)
            pi[j] = w / n
    return mu, sig, pi


def bisection(x, v):
    lo = 0
    hi = len(x)
    while lo < hi:
        mid = (lo + hi) // 2
        if x[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo


def bubble_sort(x):
    x = x.copy()
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(n - i - 1):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    return x


def correlation(data):
    N, M = data.shape
    spread = np.std(data, axis=0)
    spread = np.where(spread <= 0.1, 1.0, spread)
    data = data - np.mean(data, axis=0)
    data = data / (np.sqrt(N) * spread)
    corr = np.eye(M)
    for i in range(M - 1):
        corr[i + 1 : M, i] = corr[i, i + 1 : M] = data[:, i] @ data[:, i + 1 : M]
    return corr


def durbin(r):
    N = len(r)
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, N):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def horizontal_diffusion(u, coefficients):
    I, J, _ = coefficients.shape
    lap = 4.0 * u[1 : I + 3, 1 : J + 3, :] - (
        u[2 : I + 4, 1 : J + 3, :] + u[: I + 2, 1 : J + 3, :] + u[1 : I + 3, 2 : J + 4, :] + u[1 : I + 3, : J + 2, :]
    )
    res = lap[1:, 1 : J + 1, :] - lap[:-1, 1 : J + 1, :]
    x = np.where((res * (u[2 : I + 3, 2 : J + 2, :] - u[1 : I + 2, 2 : J + 2, :])) > 0, 0, res)
    res = lap[1 : I + 1, 1:, :] - lap[1 : I + 1, :-1, :]
    y = np.where((res * (u[2 : I + 2, 2 : J + 3, :] - u[2 : I + 2, 1 : J + 2, :])) > 0, 0, res)
    return u[2 : I + 2, 2 : J + 2, :] - coefficients * (x[1:] - x[:-1] + y[:, 1:] - y[:, :-1])


def arnoldi(A, b):
    N = A.shape[0]
    Q = np.zeros((N, N + 1))
    H = np.zeros((N + 1, N))
    Q[:, 0] = b / np.linalg.norm(b)
    for k in range(N - 1):
        v = A @ Q[:, k]
        for j in range(k + 1):
            H[j, k] = Q[:, j] @ v
            v = v - H[j, k] * Q[:, j]
        H[k + 1, k] = np.linalg.norm(v)
        Q[:, k + 1] = v / H[k + 1, k]
    return Q, H


def moving_variances(x, w):
    n = len(x) - w + 1
    y = np.zeros(n)
    for i in range(n):
        z = x[i : i + w]
        y[i] = np.mean((z - np.mean(z)) ** 2) / np.sum(np.where(z > z[0], z, 1.0))
    return y


def symmetric(n: int) -> np.ndarray:
    a = GENERATOR.random((n, n))
    return a + a.T


POINTS = GENERATOR.random((12, 2))

# Each with its arguments, and whether it has derivatives there that differences can be compared with.
PROGRAMS: dict[Any, tuple[tuple[Any, ...], bool]] = {
    thomas: ((*GENERATOR.random((1, 6)), GENERATOR.random(6) + 3, *GENERATOR.random((2, 6))), True),
    householder: ((GENERATOR.random((5, 3)),), True),
    sieve: ((50,), False),
    dijkstra: ((GENERATOR.random((7, 7)), 2), True),
    matrix_chain: ((np.array([30.0, 35, 15, 5, 10, 20, 25]),), True),
    runge_kutta: ((np.float64(1.0), 2.0, 1e-6), False),
    fourier: (tuple(GENERATOR.random((2, 8))), True),
    game_of_life: (((GENERATOR.random((6, 7)) > 0.6).astype(np.int64), 3), False),
    gmres: ((GENERATOR.random((4, 4)) + 4 * np.eye(4), GENERATOR.random(4)), False),
    jacobi_eigenvalues: ((symmetric(4), 5), True),
    kmeans: ((POINTS, POINTS[:3].copy(), 4), False),
    expectation_maximization: (
        (GENERATOR.standard_normal(15) + np.repeat([0, 4.0, 8], 5), np.array([0.5, 4.5, 7.0]), 3),
        True,
    ),
    bisection: ((np.sort(GENERATOR.random(9)), 0.5), False),
    bubble_sort: ((GENERATOR.random(8),), True),
    correlation: ((GENERATOR.random((8, 5)),), True),
    durbin: ((GENERATOR.random(6),), True),
    horizontal_diffusion: ((GENERATOR.random((9, 8, 3)), GENERATOR.random((5, 4, 3))), True),
    arnoldi: ((symmetric(5), GENERATOR.random(5)), False),
    moving_variances: ((GENERATOR.random(9), 4), True),
}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_they_compute_what_numpy_does(function: Any) -> None:
    arguments, differentiable = PROGRAMS[function]
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    wanted, decorated = function(*copies), op(function)
    for run in (decorated, decorated.interpret):
        found = run(*arguments)
        results = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for one, other in results:
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    if differentiable:
        tc.check_grads(decorated, arguments)
