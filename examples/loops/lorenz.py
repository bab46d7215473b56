"""The Lorenz system: how much the first state decides, by gradients over a million steps.

    python examples/loops/lorenz.py

Each step is one of the classical Runge-Kutta method. The gradient of where the system ends by where it began grows like
exp(0.9 t), which is what chaos means. Over a short time it is of use: Newton's method finds a state that comes back to
itself, and the time that it takes, in a few steps.
"""

import argparse

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def speed(u):
    v: real[3]
    v[0] = 10 * (u[1] - u[0])
    v[1] = u[0] * (28 - u[2]) - u[1]
    v[2] = u[0] * u[1] - 8 / 3 * u[2]
    return v


@op
def trajectory(u, steps, width):
    """The state after so many steps."""
    for _ in range(steps):
        a = speed(u)
        b = speed(u + width / 2 * a)
        c = speed(u + width / 2 * b)
        d = speed(u + width * c)
        u = u + width / 6 * (a + 2 * b + 2 * c + d)
    return u


def height(u, steps, width):
    return trajectory(u, steps, width)[2]


slope = tc.grad(height)  # by the first state: one pass back over all steps
derivatives = tc.jacobian(trajectory, argnums=(0, 2), mode="forward")


def periodic_orbit(u, period, steps):
    """A state as high as `u` and near it that comes back to itself, its period, and by how much it fails."""
    for _ in range(8):
        width = np.array(period / steps)
        off = trajectory(u, steps, width) - u
        by_state, by_width = derivatives(u, steps, width)
        # Two coordinates and the period are unknown: the third coordinate says where on the orbit to begin.
        matrix = np.column_stack([(by_state - np.eye(3))[:, :2], by_width / steps])
        change = np.linalg.solve(matrix, -off)
        u, period = u + np.array([*change[:2], 0.0]), period + change[2]
    return u, float(period), float(np.abs(off).max())


def main(steps=1_000_000, width=2e-4):
    on_attractor = trajectory(np.array([1.0, 2.0, 20.0]), 20_000, 1e-3)
    growth = float(np.log(np.linalg.norm(slope(on_attractor, steps, width))) / (steps * width))
    print(f"over {steps} steps, a time of {steps * width:g}, differences have grown like exp({growth:.2f} t)")
    state, period, off = periodic_orbit(np.array([-13.8, -19.6, 27.0]), 1.56, steps=2000)
    print(f"from {state.round(6)} back in {period:.9f}, but for {off:.0e}")
    return {"growth": growth, "state": state, "period": period, "off": off}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--width", type=float, default=2e-4)
    main(**vars(parser.parse_args()))
