"""Loops that run, beside loops by hand for Numba and `jax.lax` loops: `python -m benchmarks.loops`."""
