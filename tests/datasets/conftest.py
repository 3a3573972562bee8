"""A web server with the originals of the data sets, in the place of the network."""

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dataset_files import svmlight
from tensormachines.datasets import SETS, parsers
from tensormachines.datasets import download as download_module


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch, shared_data):
    """Keep tests from the user's folders, and from waiting between tries; shared_data comes before that."""
    monkeypatch.delenv("TENSORMACHINES_DATA", raising=False)
    monkeypatch.setenv("TENSORMACHINES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download_module, "PAUSE", 0.0)


@pytest.fixture
def server():
    """A web server of the files in ``server.files``; a request uses up one of ``server.faults`` and adds its
    path to ``server.asked``.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            web.asked.append(self.path)
            fault = web.faults.pop(0) if web.faults else None
            body = web.files.get(self.path)
            if self.path in web.moved:
                self.send_response(302)
                self.send_header("Location", web.moved[self.path])
                self.end_headers()
                return
            if fault == "error" or body is None:
                self.send_error(503 if fault else 404)
                return
            self.send_response(200)
            if web.tell_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

        def log_message(self, *_):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.files, web.faults, web.asked, web.tell_length = {}, [], [], True
    web.moved = {}  # path: new address
    web.url = f"http://127.0.0.1:{web.server_port}"
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    web.shutdown()
    thread.join()
    web.server_close()


@pytest.fixture
def publish(server, monkeypatch):
    """Publish the original of a set, with that many rows and columns, on the server."""

    def publish(name, files, rows, test_rows, columns, sha256=None):
        server.files.update({f"/{file}": body for file, body in files.items()})
        remotes = tuple(parsers.Remote(file, (f"{server.url}/{file}",), sha256) for file in files)
        monkeypatch.setitem(parsers.ORIGINALS, name, replace(parsers.ORIGINALS[name], remotes=remotes))
        monkeypatch.setitem(SETS, name, replace(SETS[name], rows=rows, test_rows=test_rows, columns=columns))

    return publish


@pytest.fixture
def small(rng):
    return {
        "X_train": rng.integers(1, 9, (30, 4)).astype(np.int8),
        "y_train": np.repeat([-1, 1], 15).astype(np.int8),
        "X_test": rng.integers(1, 9, (6, 4)).astype(np.int8),
        "y_test": np.repeat([-1, 1], 3).astype(np.int8),
    }


@pytest.fixture
def adult(rng, publish):
    """a9a and a9a.t, with 123 columns of which the last is empty in the second."""
    X, X_test = (rng.integers(0, 2, (rows, 123)) for rows in (6, 4))
    X_test[:, -1] = 0
    y, y_test = np.array([-1, 1, 1, -1, -1, 1]), np.array([1, -1, -1, 1])
    publish("adult", {"a9a": svmlight(X, y), "a9a.t": svmlight(X_test, y_test)}, 6, 4, 122)
    return X[:, :122], y, X_test[:, :122], y_test
