"""Tensor statements, evaluated: accesses, conditions, reductions and values become sketches."""
