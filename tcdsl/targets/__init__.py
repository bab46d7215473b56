"""Machines that kernels run on: what a target is, those there are, and the disk cache that they share."""
