"""Integer sets and exact arithmetic on sizes: what ranges, simplification, derivatives and loops ask isl."""
