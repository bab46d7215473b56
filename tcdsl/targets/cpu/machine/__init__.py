"""LLVM and threads: object code, where it is loaded, the liberties it takes, and calls of it."""
