"""Machines that kernels run on. `tcdsl.targets.cpu` is the first."""
