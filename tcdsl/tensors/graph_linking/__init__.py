"""Graphs and code become one program: memory followed through both in the order of execution."""
