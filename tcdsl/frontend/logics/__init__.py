"""Logics and specs: einsum, contractions, and the projections and slots that a logic string describes."""
