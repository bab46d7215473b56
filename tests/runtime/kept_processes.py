"""Modules with functions of many kinds, and fresh processes that share one cache and call them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent

HELPERS = """
def scale(v):
    return v * {module}
"""

MODULE = """
from typing import Any
import numpy as np
from numpy.typing import NDArray
import tcdsl as tc
from tcdsl import cd, op
import helpers_of_kept as helpers

FACTOR = {constant}
WEIGHTS = [1.0, {element}]
KINDS = {{"a": {entry}}}
real_type = np.{type}
EXTENT = {extent}

def plain(v):
    return v * {plain}

def attributed(v):
    return v * attributed.factor

attributed.factor = {attribute}

def outer(v):
    return inner_plain(v)

def inner_plain(v):
    return v - {deep}

{shadow}

@op
def callee(x):
    y[i] = x[i] * {callee}
    return y

@op
def by_text(x):
    return x + {text}

@op
def by_constant(x):
    y[i] = x[i] * FACTOR
    return y

@op
def by_element(x):
    return x * WEIGHTS[1] + KINDS["a"]

@op
def by_plain(x):
    return plain(x)

@op
def by_deep(x):
    y[i] = outer(x[i])
    return y

@op
def by_callee(x):
    return callee(x) + 1

@op
def by_attribute(x):
    return attributed(x)

@op
def by_annotation(x: Any, w: "real[EXTENT - 1]") -> NDArray[np.float64]:
    y: real[EXTENT]
    y[i] = x[i] * w[0]
    return y

@op
def by_module(x):
    return helpers.scale(x)

@op
def by_missing_name(x):
    return tanh(x)

@op
def by_default(x, factor={default}):
    return x * factor

@op
def by_configuration(x, *, mode="{mode}", activation=plain):
    return activation(x) if mode == "double" else x * 3

@op
def by_value(x, n):
    return x * (3.0, 2.0)[n > 2]

@op
def by_conversion(x):
    return x + real_type(1)

def made(k):
    offset = k + 1
    @op
    def by_closure(x):
        return x * k + offset
    return by_closure

by_closure = made({closure})

@op
def clipped(x):
    return x

@clipped.defvjp
def clipped_pullback(x, y, d_y):
    return d_y * {rule}

by_rule = tc.grad(lambda x: clipped(x).sum())
by_inner_rule = tc.value_and_grad(lambda x: (clipped(x) * x).sum())
by_derivative = tc.grad(lambda x: by_callee(x * x).sum())
by_lambda = tc.grad(lambda x: (x * x * {in_lambda}).sum())
by_argnums = tc.grad(lambda x, n: (x * x * n).sum(), argnums={argnums})

@cd
def by_code(x):
    x[i] += {code}

@op
def by_oob{oob}

FUNCTIONS = {{name: f for name, f in sorted(globals().items()) if name.startswith("by_")}}
ARGUMENTS = {{
    "by_value": (np.arange(4.0), {value}),
    "by_annotation": (np.arange(EXTENT + 0.0), np.arange(EXTENT - 1.0)), "by_argnums": (np.arange(4.0), 2.0),
    "by_oob": (np.arange(4.0), np.array([1, 2]))}}
for name, f in sorted(vars().copy().items()):
    if name.startswith("by_") and name not in ARGUMENTS:
        ARGUMENTS[name] = (np.arange(4.0),)
"""

FIRST: dict[str, Any] = {
    "module": 2.0,
    "constant": 2.0,
    "element": 2.0,
    "entry": 1.0,
    "type": "float32",
    "plain": 2.0,
    "deep": 2.0,
    "shadow": "",
    "callee": 2.0,
    "text": 2.0,
    "default": 2.0,
    "mode": "double",
    "closure": 2.0,
    "attribute": 2.0,
    "extent": 4,
    "rule": 2.0,
    "in_lambda": 2.0,
    "argnums": 0,
    "code": 2.0,
    "value": 4,
    "oob": "(x, at):\n    y[i] = x[at[i]]\n    return y",
}
SECOND = {name: value + 1 if isinstance(value, float | int) else value for name, value in FIRST.items()} | {
    "type": "float64",
    "shadow": "def tanh(v):\n    return v * 5",
    "mode": "triple",
    "value": 1,
    "oob": "(x, at):\n    y[i] = x[at[i] - 1]\n    return y",
}

RUN = """
import json, sys
import numpy as np
import module_of_kept as m

def listed(value):
    if isinstance(value, tuple):
        return [listed(each) for each in value]
    return np.asarray(value).tolist()

found = {}
for name, f in m.FUNCTIONS.items():
    arguments = m.ARGUMENTS[name]
    result = f(*arguments)
    found[name] = [listed(arguments[0] if result is None else result), len(f.calls.served), f.staging._misses]
print(json.dumps(found))
"""


class Processes:
    """Fresh processes with one cache directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"

    def run(self, script: str, place: str, **environment: str) -> str:
        folder = self.folder / place
        folder.mkdir(exist_ok=True)
        known = {
            **os.environ,
            "TCDSL_CACHE_DIR": str(self.cache),
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
            # Python itself takes a module for the one of before that was written in the same second.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**known, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, place: str, texts: dict[str, Any], more: str = "") -> None:
        folder = self.folder / place
        folder.mkdir(exist_ok=True)
        (folder / "helpers_of_kept.py").write_text(HELPERS.format(**texts))
        (folder / "module_of_kept.py").write_text(MODULE.format(**texts) + more)

    def found(self, place: str, texts: dict[str, Any], **environment: str) -> dict[str, Any]:
        self.write(place, texts)
        found: dict[str, Any] = json.loads(self.run(RUN, place, **environment))
        return found
