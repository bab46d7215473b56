"""The functions of generated modules as LLVM code."""
