# tcdsl: literal
"""The expression of `micrograd.py` in the literal spelling, where a string and a value declare a parameter.

python -m tcdsl run examples/micrograd_literal.py
"""

import tcdsl as tc
from tcdsl import op


@op
def expression():
    c = "a" [-4] + "b" [2]
    d = a * b + b**3
    c += c + 1
    c += 1 + c - a
    d += d * 2 + relu(b + a)
    d += 3 * d + relu(b - a)
    e = c - d
    f = e**2
    g = f / 2
    return g + 10 / f


def main():
    g = expression()
    tc.compile(tc.train.grad_update(g)).run()
    a, b = expression.parameters["a"], expression.parameters["b"]
    print(f"g = {g.item()}, dg/da = {a.grad.item()}, dg/db = {b.grad.item()}")
    return {"value": g.item(), "gradients": (a.grad.item(), b.grad.item())}


if __name__ == "__main__":
    main()
