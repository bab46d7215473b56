"""Loop nests as LLVM code."""
