"""Sums of loop nests a few cells and terms at a time, in registers."""
