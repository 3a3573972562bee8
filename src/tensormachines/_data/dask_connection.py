"""The connection to a Dask scheduler, and the error if it is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager


@contextmanager
def scheduler_needed() -> Iterator[None]:
    """Raise a single error if the scheduler is lost; Dask raises several, which name its internal tasks.

    An error of a task, or of a client that still has its scheduler, is passed on unchanged."""
    try:
        yield
    except (CancelledError, OSError) as error:
        if not _is_lost_connection(error):
            raise
        raise ConnectionError(
            "The connection to the Dask scheduler was lost. The estimator is as it was before. Start the "
            "cluster again, connect a new Client, make the collections anew, and fit again; with checkpoint= "
            "a fit goes on from its last checkpoint."
        ) from error


def _is_lost_connection(error: BaseException) -> bool:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    lost = getattr(error, "reason", None) == "scheduler-connection-lost"  # of a FutureCancelledError
    try:
        return lost or distributed.default_client().status == "connecting"
    except ValueError:  # there is no client
        return lost
