"""Elementary functions in arithmetic that LLVM vectorizes."""
