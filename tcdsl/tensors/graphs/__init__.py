"""Tensors of graphs: leaves, nodes, their memory, types and operators."""
