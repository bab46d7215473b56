"""A Gaussian process fitted to points: a Cholesky factorization and triangular solves, and gradients through them.

    python examples/loops/gaussian_process.py

The marginal likelihood of the points says how well a length scale, a height and a noise explain them. Its gradient goes
backwards through the factorization, which is six lines. After Rasmussen and Williams, "Gaussian processes for machine
learning" (2006), algorithm 2.1.
"""

import argparse

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def cholesky(A: "real[N, N]"):
    """The lower triangular L with A = L @ L.T; of A only the lower triangle is read."""
    for k in range(N):
        A[k, k] = sqrt(A[k, k])
        A[i, k] /= A[k, k], i > k
        A[i, j] -= A[i, k] * A[j, k], i > k, k < j, j <= i
    L[i, j] = A[i, j] * (j <= i)
    return L


@op
def solve_lower(L: "real[N, N]", b: "real[N]"):
    """The y with L @ y = b."""
    y: real[N]
    for k in range(N):
        y[k] = (b[k] - sum(L[k, j] * y[j] for j in range(k))) / L[k, k]
    return y


@op
def solve_upper(L: "real[N, N]", b: "real[N]"):
    """The y with L.T @ y = b."""
    y: real[N]
    for k in reversed(range(N)):
        y[k] = (b[k] - sum(L[j, k] * y[j] for j in range(k + 1, N))) / L[k, k]
    return y


@op
def covariance(x, z, logarithms):
    """Of the values at x and z; the logarithms are those of the length scale, the height and the noise."""
    length, height = exp(logarithms[0]), exp(logarithms[1])
    K[n, m] = height**2 * exp(-0.5 * ((x[n] - z[m]) / length) ** 2)
    return K


@op
def noisy_covariance(x, logarithms):
    K = covariance(x, x, logarithms)
    K[n, n] += exp(2 * logarithms[2])
    return K


@op
def log_likelihood(logarithms, x, y: "real[N]"):
    L = cholesky(noisy_covariance(x, logarithms))
    white = solve_lower(L, y)
    total[()] = -0.5 * sum(white[n] * white[n]) - sum(log(L[n, n])) - 0.5 * N * log(2 * pi)
    return total


@op
def prediction(logarithms, x, y, z):
    """The mean of the process at z, given its values y at x."""
    L = cholesky(noisy_covariance(x, logarithms))
    weights = solve_upper(L, solve_lower(L, y))
    mean[m] = sum(covariance(z, x, logarithms)[m, n] * weights[n])
    return mean


def main(points=40, steps=200):
    generator = np.random.default_rng(3)
    x = np.sort(generator.uniform(0, 10, points))
    y = np.sin(x) + generator.normal(0, 0.2, points)
    logarithms = np.zeros(3)
    gradient = tc.value_and_grad(log_likelihood)
    values = []
    for _ in range(steps):
        value, slope = gradient(logarithms, x, y)
        values.append(float(value))
        logarithms += 0.3 * slope / np.linalg.norm(slope).clip(10)
    length, height, noise = np.exp(logarithms)
    z = np.linspace(0.5, 9.5, 50)
    error = float(np.abs(prediction(logarithms, x, y, z) - np.sin(z)).max())
    print(f"log-likelihood {values[0]:.2f}, then {values[-1]:.2f}")
    print(f"length scale {length:.2f}, height {height:.2f}, noise {noise:.3f}; at most {error:.3f} from the sine")
    return {"values": values, "noise": float(noise), "slope": slope, "error": error}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--steps", type=int, default=200)
    main(**vars(parser.parse_args()))
