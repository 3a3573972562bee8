"""Rows, from wherever they are, as blocks."""
