"""Python functions as the front end: rewriting, and the recorder that the rewritten function calls."""
