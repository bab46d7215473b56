"""Tensors of lazily computed graphs: leaves, nodes, parameters, layers, code and routines. See the README."""
