"""Readers of files, one per format."""
