"""``python -m benchmarks.small`` times a few small cases beside fixed work, for a check of each change in seconds.

A time alone says little on a machine that others use, or on another machine. So each case takes turns with the work in
`work`, which is the same whatever tcdsl does, and what counts is how many times longer that takes: `cases` says what
runs, `process` measures once, the command compares with the ratios of an earlier state in ``ratios.json``.
"""
