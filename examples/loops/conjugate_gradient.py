"""Conjugate gradients: the temperature of a plate with heaters, to a tolerance, and which heaters matter where.

    python examples/loops/conjugate_gradient.py

The loop ends when the residual is small: a `while` in the program. Nobody needs the derivative of its rounds, because
that of a solution is another solution: with A x = b, the adjoint of b is the solution for the adjoint of x. `defvjp`
says so.
"""

import argparse

import numpy as np

import tcdsl as tc
from tcdsl import op


def at(x, row, column):
    return get(x[row, column], 0.0)


@op
def conduct(x: "real[H, W]", metal):
    """What flows out of each cell: to its neighbours, and to the cold border, as well as the metal conducts."""
    y: real[H, W]
    beside = at(x, i - 1, j) + at(x, i + 1, j) + at(x, i, j - 1) + at(x, i, j + 1)
    y[i, j] = metal * (4 * x[i, j] - beside)
    return y


@op
def dot(a, b):
    total[()] += a[i, j] * b[i, j]
    return total


@op
def conjugate_gradient(metal, heat, tolerance):
    """The x with conduct(x, metal) == heat, and the number of rounds."""
    x = 0 * heat
    residual = heat
    p = heat
    square = dot(heat, heat)
    limit = square * tolerance**2
    rounds = 0
    while square > limit:
        flow = conduct(p, metal)
        length = square / dot(p, flow)
        x = x + length * p
        residual = residual - length * flow
        before = square
        square = dot(residual, residual)
        p = residual + square / before * p
        rounds = rounds + 1
    return x, rounds


@op
def temperature(metal, heat, tolerance):
    return conjugate_gradient(metal, heat, tolerance)[0]


@temperature.defvjp
def temperature_pullback(metal, heat, tolerance, x, d_x):
    d_heat = temperature(metal, d_x, tolerance)
    d_metal = -dot(d_heat, conduct(x, 1.0))
    return d_metal, d_heat, None


def main(size=40, tolerance=1e-9):
    heat = np.zeros((size, size))
    heat[size // 4, size // 4] = heat[size // 2, size // 3] = 1.0
    x, rounds = conjugate_gradient(2.0, heat, tolerance)
    left = np.abs(conduct(x, 2.0) - heat).max()
    print(f"{rounds} rounds for {size**2} cells; what is left is at most {left:.1e}")
    corner = tc.grad(lambda metal, heat: temperature(metal, heat, tolerance)[-1, -1], argnums=(0, 1))
    d_metal, d_heat = corner(np.array(2.0), heat)
    print(f"the corner is {x[-1, -1]:.2e}; heaters add {np.sum(d_heat * heat):.2e} to it, metal {2 * d_metal:.2e}")
    return {"x": x, "rounds": int(rounds), "left": float(left), "d_metal": float(d_metal), "d_heat": d_heat}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--tolerance", type=float, default=1e-9)
    main(**vars(parser.parse_args()))
