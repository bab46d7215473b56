"""A whole training step of a small network, beside PyTorch, JAX and a loop nest written by hand."""
