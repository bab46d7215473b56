"""Models in SkriptND, the language of NNEF 2.0: texts become operators, and graphs become statements."""
