"""Files to read, written by name into the temporary folder of a test."""

import numpy as np
import pytest


@pytest.fixture
def saved(tmp_path):
    def save(name, array):
        np.save(tmp_path / name, array)
        return tmp_path / name

    return save


@pytest.fixture
def text(tmp_path):
    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="")
        return path

    return write
