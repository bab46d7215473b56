"""Sizes of programs: found from arrays at the call, evaluated, compiled to formulas; their signs, and which agree."""
