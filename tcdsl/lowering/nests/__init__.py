"""Statements in an order become loops with exact bounds: interiors, borders, blocks, rows."""
