"""Passes over statements, before there are loops: fusion, order, memory, and shared nests."""
