"""A Kalman filter: where a moving thing is, from noisy positions, and how noisy they are, from the likelihood.

    python examples/loops/kalman_filter.py

The filter is one loop over the observations. Its log-likelihood is differentiated through all of them, so gradient
ascent finds the noise of the sensor and the strength of the pushes that the thing receives.
"""

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def kalman_filter(seen: "real[T]", logarithms, mean: "real[S]", P: "real[S, S]", step: "real[S, S]", look: "real[S]"):
    """The mean state after each observation, and the log-likelihood; `logarithms` are those of the two noises."""
    push, noise = exp(2 * logarithms[0]), exp(2 * logarithms[1])
    means: real[T, S]
    likelihood = 0.0
    for t in range(T):
        m[a] = sum(step[a, b] * mean[b])
        Q[a, b] = sum(step[a, c] * P[c, d] * step[b, d]) + push * (a == b)
        error = seen[t] - sum(look[a] * m[a])
        Qlook[a] = sum(Q[a, b] * look[b])
        spread = sum(look[a] * Qlook[a]) + noise
        likelihood = likelihood - 0.5 * (error * error / spread + log(2 * pi * spread))
        mean[a] = m[a] + Qlook[a] / spread * error
        P[a, b] = Q[a, b] - Qlook[a] * Qlook[b] / spread
        means[t, a] = mean[a]
    return means, likelihood


def walk(count, push, noise, step, generator):
    """Positions and velocities, and positions as they are observed."""
    states = [np.zeros(2)]
    for _ in range(count):
        states.append(step @ states[-1] + generator.normal(0, push, 2))
    states = np.array(states[1:])
    return states, states[:, 0] + generator.normal(0, noise, count)


def main(count=200, steps=60):
    push, noise = 0.1, 1.0
    step, look = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    states, seen = walk(count, push, noise, step, np.random.default_rng(2))
    model = np.zeros(2), np.eye(2), step, look
    gradient = tc.value_and_grad(lambda logarithms: kalman_filter(seen, logarithms, *model)[1])
    logarithms, values = np.array([0.0, 0.0]), []
    for _ in range(steps):
        value, slope = gradient(logarithms)
        values.append(float(value))
        logarithms = logarithms + 0.2 * slope / np.linalg.norm(slope).clip(40)
    found = np.exp(logarithms)
    means, _ = kalman_filter(seen, logarithms, *model)
    errors = [float(np.sqrt(np.mean((of - states[:, 0]) ** 2))) for of in (seen, means[:, 0])]
    print(f"log-likelihood {values[0]:.1f}, then {values[-1]:.1f}; push {found[0]:.3f}, noise {found[1]:.3f}")
    print(f"positions are {errors[0]:.2f} off as they are observed, {errors[1]:.2f} filtered")
    return {"values": values, "found": found, "errors": errors}


if __name__ == "__main__":
    main()
