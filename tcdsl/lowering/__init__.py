"""From programs to loop nests.

`lower` runs the stages in this order: names (`lower`), equal sizes, constants, dead and repeated statements
(`simplify`), chains of sums over the same cells (`summing`), producers moved into readers (`fusion`), scatters solved
(`solving`), loop orders (`schedule`), memory (`buffers`), shared loops (`merging`), steps in phases (`phases`), loops
and branches (`nests`, `bodies`, `partial` on top of `scan`, `points`, `scalars`, `boundaries`), and what can be said
better afterwards (`forwarding`, `calls`, `hoisting`). `loops` is the result's language, `printer` shows it, `execute`
runs it in plain Python, `executed` counts its points, `liveness` its bytes.
"""
