"""Decorated functions on tensors: calls, parameters and layers."""
