"""The site in a real browser, wide and on a phone, light and dark. `make docs` builds it."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chromium import chromium

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
if not (SITE / "index.html").exists():
    pytest.skip("The site is not built: make docs", allow_module_level=True)
pytestmark = pytest.mark.browser

PAGES = sorted(
    str(path.relative_to(SITE))
    for path in SITE.rglob("*.html")
    if path.parent != SITE and not {"generated", "_static"} & set(path.parts)
)
WIDE, PHONE = {"width": 1300, "height": 900}, {"width": 390, "height": 844}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module", params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(scope="module", params=[WIDE, PHONE], ids=["wide", "phone"])
def window(request, scheme, address):
    """Return a page of the browser, and a list of what must not happen in it."""
    with chromium() as browser:
        page, heard = browser.new_page(viewport=request.param, color_scheme=scheme), []
        page.on("console", lambda message: message.type == "error" and heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda each: each.url.startswith((address, "data:")) or heard.append(each.url))
        yield page, heard


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_is_complete_and_asks_nobody_else(window, address, name):
    page, heard = window
    heard.clear()
    page.goto(address + name, wait_until="load")
    assert heard == []
    wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wider <= 0, "the page scrolls sideways"
    broken = "[...document.images].filter(each => each.complete && !each.naturalWidth).map(each => each.src)"
    assert page.evaluate(broken) == []
    assert page.locator("h1").count() == 1


def test_the_start_page_sells_in_one_screen(window, address):
    page, _ = window
    page.goto(address + "docs/index.html")
    height = page.viewport_size["height"]
    for part in ("h1", ".hero pre", ".hero .sd-btn >> nth=0"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= height, part
