"""A browser without a window, for pages that people look at. Tests that need it are skipped without it."""

import shutil
from contextlib import contextmanager

import pytest

playwright = pytest.importorskip("playwright.sync_api")
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if PROGRAM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield opened
        opened.close()
