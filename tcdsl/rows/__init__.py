"""Shapes of three rows, and the generalized einsum notation that relates them."""
