"""A fitted model as an interactive HTML page."""

from .page import html_report

__all__ = ["html_report"]
