"""``python -m benchmarks`` times tcdsl beside its peers in one run; results are compared before anything is timed.

`cases` is the list, one row per case; `programs` holds what tcdsl runs; `numpy_peer`, `torch_peer` and `jax_peer` hold
the same computations in each peer's best reasonable form; `measure` compares and times, `machine` says where, `report`
shows.
"""
