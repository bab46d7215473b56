"""Nodes and statements on tensors, staged by the functions that do the same for arrays."""
