"""From programs to loop nests: `pipeline` lists the passes in order, `lower` runs them."""
