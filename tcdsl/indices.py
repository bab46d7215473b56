"""Index letters to import, for code that static checkers read: ``from tcdsl.indices import i, j, k``.

In a subscript a one-letter lower-case name that the function has not bound is an index variable anyway; the import
tells checkers that it exists, and makes it one in local definitions such as ``height = (y + 0.5) / H``. The letters do
nothing by themselves.
"""

from __future__ import annotations

import string
from typing import Any

__all__ = ["ImportedLetter"]
__all__ += list(string.ascii_lowercase)


class ImportedLetter:
    """A letter that static checkers know and decorated functions take as if it were not there: a lower-case one for an
    index variable, a capital from `tcdsl.sizes` for a size. It does nothing by itself.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


# Typed as Any, because a checker must accept them as indices, as numbers and in comparisons alike.
a: Any
b: Any
c: Any
d: Any
e: Any
f: Any
g: Any
h: Any
i: Any
j: Any
k: Any
l: Any
m: Any
n: Any
o: Any
p: Any
q: Any
r: Any
s: Any
t: Any
u: Any
v: Any
w: Any
x: Any
y: Any
z: Any
for _letter in string.ascii_lowercase:
    globals()[_letter] = ImportedLetter(_letter)
del _letter
