"""A fitted model as a page to read and to play with."""

from .page import html_report

__all__ = ["html_report"]
