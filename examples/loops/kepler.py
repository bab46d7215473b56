"""Newton's iteration for orbits of planets, with the derivative that follows from the equation and not from the rounds.

    python examples/loops/kepler.py

Kepler's equation E - e sin E = M gives the angle E at which a planet is at time M, on an orbit of eccentricity e. Each
angle needs some rounds of its own. Differentiating the equation gives the derivatives at once,
dE = (dM + sin E de) / (1 - e cos E), so that an orbit can be fitted to observations by gradients.
"""

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def anomaly(M: "real[N]", e):
    """The angles E with E - e * sin(E) == M."""
    E: real[N]
    for n in range(N):
        x = M[n]
        change = 1.0
        while abs(change) > 1e-14:
            change = (x - e * sin(x) - M[n]) / (1 - e * cos(x))
            x = x - change
        E[n] = x
    return E


@anomaly.defvjp
def anomaly_pullback(M, e, E, d_E):
    d_M[n] = d_E[n] / (1 - e * cos(E[n]))
    d_e[()] = sum(d_M[n] * sin(E[n]))
    return d_M, d_e


@op
def orbit(times, shape):
    """Positions at these times; `shape` is the size, the eccentricity and the phase."""
    angle = anomaly(times + shape[2], shape[1])
    at: real[angle.shape[0], 2]
    at[n, 0] = shape[0] * (cos(angle[n]) - shape[1])
    at[n, 1] = shape[0] * sqrt(1 - shape[1] ** 2) * sin(angle[n])
    return at


@op
def misfit(shape, times, seen):
    at = orbit(times, shape)
    total[()] = mean(square(at[n, c] - seen[n, c]))
    return total


def main(count=50, steps=400):
    generator = np.random.default_rng(6)
    times = np.sort(generator.uniform(0, 2 * np.pi, count))
    true = np.array([1.5, 0.6, 0.4])
    seen = orbit(times, true) + generator.normal(0, 0.01, (count, 2))
    gradient = tc.value_and_grad(misfit)
    shape, values = np.array([1.0, 0.2, 0.0]), []
    for _ in range(steps):
        value, slope = gradient(shape, times, seen)
        values.append(float(value))
        shape = shape - 0.2 * slope
    print(f"misfit {values[0]:.4f}, then {values[-1]:.6f}; size, eccentricity and phase {shape.round(3)}")
    return {"values": values, "shape": shape, "true": true}


if __name__ == "__main__":
    main()
