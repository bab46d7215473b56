"""Calling programs: decorated functions, their caches, memory, and derivatives of functions."""
