"""The intermediate representation: programs of typed index notation, and everything that reads or writes them.

The nodes are in `program`, `expressions` and `domain`; the tables in `primitives`, `accumulators` and `dtypes`. `build`
makes typed expressions, `text` goes to text and back, `verifier` checks a program, `interpreter` runs it.
"""
