"""Reading ahead in a thread."""

import gc
import threading
import time
import traceback

import numpy as np
import pytest

from row_blocks import fails, row
from tensormachines import blocks


@pytest.fixture
def no_threads_left():
    before = threading.active_count()
    yield
    gc.collect()
    assert threading.active_count() == before


@pytest.mark.usefixtures("no_threads_left")
class TestAhead:
    def test_order_is_kept(self):
        assert list(blocks.ahead(range(100))) == list(range(100))
        assert list(blocks.ahead([])) == []
        assert list(blocks.ahead([None, None])) == [None, None]

    def test_elements_are_made_in_another_thread(self):
        assert threading.get_ident() not in list(blocks.ahead(threading.get_ident() for _ in range(3)))

    def test_errors_come_through_with_their_traceback(self):
        def fail_at_third():
            yield 1
            yield 2
            raise ValueError("third")

        found = []
        with pytest.raises(ValueError, match="third") as caught:
            found.extend(blocks.ahead(fail_at_third()))
        assert found == [1, 2]
        assert any(
            frame.name == "fail_at_third" for frame in traceback.extract_tb(caught.value.__traceback__)
        )

    def test_no_more_than_one_is_made_ahead(self):
        made = []

        def numbers():
            for number in range(10):
                made.append(number)
                yield number

        for number in blocks.ahead(numbers()):
            time.sleep(0.01)
            assert len(made) <= number + 2
        assert len(made) == 10

    def test_it_is_made_ahead_while_the_consumer_works(self):
        second = threading.Event()

        def numbers():
            yield 1
            second.set()
            yield 2

        elements = blocks.ahead(numbers())
        next(elements)
        assert second.wait(timeout=10)
        elements.close()

    def test_the_consumer_may_drop_its_element(self):
        class Element:
            alive = 0

            def __init__(self):
                Element.alive += 1

            def __del__(self):
                Element.alive -= 1

        elements = blocks.ahead(Element() for _ in range(5))
        element = next(elements)
        del element
        time.sleep(0.05)
        assert Element.alive == 1
        elements.close()

    @pytest.mark.parametrize("leave", ["break", "close", "forget", "raise", "cycle", "never"])
    def test_the_thread_ends_when_the_consumer_leaves(self, leave):
        closed = []

        def numbers():
            try:
                yield from range(1000)
            finally:
                closed.append(True)

        elements = blocks.ahead(numbers())
        if leave == "never":
            return
        assert next(elements) == 0
        if leave == "break":
            for _ in elements:
                break
            del elements
        elif leave == "close":
            elements.close()
        elif leave == "forget":
            del elements
        elif leave == "cycle":
            cycle = [elements]
            cycle.append(cycle)
            del elements, cycle
            gc.collect()
        else:
            with pytest.raises(KeyError):
                self.consume(elements)
            del elements
        gc.collect()
        assert closed == [True]

    def consume(self, elements):
        for _ in elements:
            raise KeyError("consumer")

    def test_it_may_be_collected_in_its_own_thread(self):
        collected = threading.Event()
        box = []

        def numbers():
            yield 1
            while not box:
                time.sleep(0.001)
            box.clear()
            gc.collect()
            collected.set()
            yield 2

        elements = blocks.ahead(numbers())
        next(elements)
        gc.disable()
        try:
            cycle = [elements]
            cycle.append(cycle)
            del elements
            box.append(cycle)
            del cycle
            assert collected.wait(timeout=10)
        finally:
            gc.enable()
        while any(thread.name.startswith("tensormachines-ahead") for thread in threading.enumerate()):
            time.sleep(0.001)

    def test_sources_read_ahead(self, text):
        source = blocks.csv(text("a.csv", "x\n" + "".join(f"{i}\n" for i in range(50))), rows=7)
        np.testing.assert_array_equal(
            np.concatenate([chunk.X[:, 0] for chunk in blocks.ahead(source)]), np.arange(50)
        )
        text("a.csv", "x\n" + "1\n" * 40 + "z\n")  # of which numbers are known
        fails(lambda: blocks.ahead(source), "a.csv", row(41), "column 'x'", "'z'")
