"""``python -m benchmarks.sparse`` shows how gradients of sparse programs grow, beside PyTorch and JAX.

`programs` holds what tcdsl runs, `torch_peer` and `jax_peer` the same in each peer's usual form, `cases` the table,
`growth` measures and fits exponents, `picture` draws.
"""
