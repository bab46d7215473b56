"""Tensors that are mostly zeros, or of which little is read, composed with their reads or stored compactly."""
