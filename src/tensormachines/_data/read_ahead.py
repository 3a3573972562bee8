"""Read one element ahead, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Element = TypeVar("Element")

_END: Any = object()


def ahead(elements: Iterable[Element]) -> Generator[Element, None, None]:
    """Iterate over ``elements`` while a thread makes the next one.

    Two elements exist at a time: the consumer's, and the one being made or waiting. The thread starts with
    the first element requested, and ends with the iteration: at the end, at an error (an error of the
    producer reaches the consumer with its traceback), or when the consumer closes or forgets the generator.
    An iterator with a ``close`` method is then closed.

    Parameters
    ----------
    elements : iterable
        Consumed in one other thread.

    Yields
    ------
    The elements, in order.
    """
    iterator = iter(elements)
    pool = ThreadPoolExecutor(1, thread_name_prefix="tensormachines-ahead")
    worker = pool.submit(threading.get_ident).result()
    try:
        upcoming = pool.submit(next, iterator, _END)
        # A list, because a variable of this generator would keep the consumer's element alive after the
        # consumer has dropped it.
        while (ready := [upcoming.result()])[0] is not _END:
            upcoming = pool.submit(next, iterator, _END)
            yield ready.pop()
    finally:
        # The garbage collector may close this generator from within the worker, which can neither join itself
        # nor close what it runs.
        inside = threading.get_ident() == worker
        pool.shutdown(wait=not inside, cancel_futures=True)
        if not inside and (close := getattr(iterator, "close", None)) is not None:
            close()
