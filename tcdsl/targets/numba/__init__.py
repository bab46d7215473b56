"""The second target: printed modules, compiled by Numba as they stand."""
