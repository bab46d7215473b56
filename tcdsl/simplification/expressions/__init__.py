"""Expressions made shorter: constants folded, factors taken out, what is computed twice computed once."""
