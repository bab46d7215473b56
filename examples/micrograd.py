"""The expression of micrograd's README: two numbers, a value, and two gradients.

    python examples/micrograd.py

`a` and `b` are parameters that the function declares where it uses them. Calling the function builds a graph; the
step that computes the value and both gradients is one compiled function. Names that are reused, such as `c` and `d`,
are new tensors each time, and each is computed once: nothing is written out where it is used, so nothing grows.
"""

import argparse
import time

import tcdsl as tc
from tcdsl import op


@op
def expression():
    a = param("a", init=[-4.0])
    b = param("b", init=[2.0])
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c - a
    d += d * 2 + relu(b + a)
    d += 3 * d + relu(b - a)
    e = c - d
    f = e**2
    g = f / 2
    return g + 10 / f


@op
def tower(*, height):
    # The same pattern again and again: written out where it is used, it would take 2**height operations.
    a = param("a", init=[0.5])
    x = a
    for _ in range(height):
        x = x + tanh(x) / 2 - x / 3
    return x


def statements(loss):
    """How many statements compute `loss` and its gradients."""
    return len(tc.compile(tc.train.grad_update(loss)).program.statements)


def main(height=30):
    begin = time.perf_counter()
    g = expression()
    step = tc.compile(tc.train.grad_update(g)).compile()
    seconds = time.perf_counter() - begin
    step.run()
    a, b = expression.parameters["a"], expression.parameters["b"]
    print(f"g = {g.item()}, dg/da = {a.grad.item()}, dg/db = {b.grad.item()}")
    print(f"{len(step.program.statements)} statements, compiled in {seconds:.2f} s")

    high = statements(tower(height=height)())
    print(f"a tower of height {height}: {high} statements")
    return {
        "value": g.item(),
        "gradients": (a.grad.item(), b.grad.item()),
        "statements": len(step.program.statements),
        "seconds": seconds,
        "tower": high,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--height", type=int, default=30, help="how often the pattern of the tower is repeated")
    main(**vars(parser.parse_args()))
