"""Calls of compiled kernels: drivers, plans of what depends on sizes, and arrays bound to them."""
