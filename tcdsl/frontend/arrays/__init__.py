"""Whole-array arithmetic, views and stores, as in NumPy."""
