"""Programs cut into blocks: which cells a block of a result needs, and programs that run on blocks."""
