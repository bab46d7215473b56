"""LLVM's instructions as text."""
