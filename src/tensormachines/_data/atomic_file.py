"""Atomic writes: a file appears when it is complete, or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from secrets import token_hex


@contextmanager
def complete_or_not(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a file next to ``path`` to write to; rename it to ``path`` at the end, or remove it on failure.

    A file that is replaced passes on its permissions."""
    final = Path(os.path.realpath(path))  # a link stays a link
    unfinished = final.with_name(f".{final.name[:40]}.{token_hex(8)}")
    try:
        with _termination_as_exit():
            replaced = final.is_file()
            if replaced:  # nobody else may read the new content either while it is written
                mode = final.stat().st_mode & 0o777 | 0o600
                os.close(os.open(str(unfinished), os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            yield unfinished
        if replaced:
            with suppress(OSError):  # some network folders have no permissions
                shutil.copymode(final, unfinished)
        os.replace(unfinished, final)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and (
            error.filename == str(unfinished) or error.errno in (ENOSPC, EDQUOT, EFBIG)
        ):
            error.filename = os.fspath(path)  # the name that the user knows
        raise


@contextmanager
def _termination_as_exit() -> Iterator[None]:
    """Turn SIGTERM, which timeout and batch systems send, into an exit that cleans up.

    Otherwise SIGTERM would end the process at once, and leave a half-written file behind."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
