"""Downloads with several attempts, a checksum, a size limit, and never half a file under the final name."""

from __future__ import annotations

import hashlib
import re
import socket
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .._data.atomic_file import complete_or_not

Progress = Callable[[int, int | None], None]  # bytes done, bytes in total (None if unknown)

TRIES = 3
PAUSE = 2.0  # seconds before the second attempt, twice as long before the third
TIMEOUT = 60.0
AT_ONCE = 1 << 18
MOST_BYTES = 1 << 30  # four times the largest original
FINAL_STATUSES = (400, 401, 403, 404, 405, 410, 451)


class DownloadError(RuntimeError):
    """A download failed; the message gives the reason."""


class _StayEncrypted(HTTPRedirectHandler):
    """Refuse to be sent from https to anything else."""

    def redirect_request(self, req: Request, *others: Any) -> Request | None:  # the new address comes last
        target = others[-1]
        if urlsplit(req.full_url).scheme == "https" and urlsplit(target).scheme != "https":
            raise DownloadError(f"{req.full_url}: redirects to {target}, which is not https")
        return super().redirect_request(req, *others)


def fetch(
    urls: tuple[str, ...],
    path: Path,
    sha256: str | None = None,
    progress: Progress | None = None,
    most_bytes: int = MOST_BYTES,
) -> None:
    """Download from the first working one of ``urls`` to ``path``, and write the sha256 to a file beside it.

    An existing file is not downloaded again, but must have the given checksum, or the one of the first
    download. A larger file than ``most_bytes`` is refused."""
    if path.exists():
        _check(path, _file_digest(path), sha256 or noted_digest(path))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for url in urls:
        try:
            _fetch_with_retries(url, path, sha256, progress, most_bytes)
            return
        except DownloadError as error:
            reasons.append(str(error))
    raise DownloadError("; ".join(dict.fromkeys(reasons)))  # two addresses may fail for the same reason


def note_digest(path: Path, digest: str) -> None:
    with complete_or_not(_note_path(path)) as unfinished:
        unfinished.write_text(f"{digest}  {path.name}\n", encoding="ascii")


def noted_digest(path: Path) -> str | None:
    """Return the sha256 in the file beside ``path``; None if there is none, or not all of it."""
    note = _note_path(path)
    words = note.read_text(encoding="ascii", errors="replace").split() if note.exists() else []
    return words[0] if words and re.fullmatch("[0-9a-f]{64}", words[0]) else None


def remove(path: Path) -> None:
    """Remove a file and its checksum file."""
    path.unlink(missing_ok=True)
    _note_path(path).unlink(missing_ok=True)


def _note_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _fetch_with_retries(
    url: str, path: Path, sha256: str | None, progress: Progress | None, most_bytes: int
) -> None:
    for attempt in range(1, TRIES + 1):
        try:
            _fetch_once(url, path, sha256, progress, most_bytes)
            return
        except (OSError, HTTPException) as error:  # OSError: refused, reset, timed out, HTTP status
            reason = getattr(error, "reason", None)  # of a URLError
            if isinstance(reason, socket.gaierror):  # usually there is no network
                raise DownloadError(f"the host {urlsplit(url).hostname} was not found") from error
            reason = str(error) or type(error).__name__
            final = isinstance(error, HTTPError) and error.code in FINAL_STATUSES
            if isinstance(error, HTTPError):
                error.close()
        if final or attempt == TRIES:
            tries = f" ({attempt} tries)" if attempt > 1 else ""
            raise DownloadError(f"{url}: {reason}{tries}")
        time.sleep(PAUSE * 2 ** (attempt - 1))


def _fetch_once(url: str, path: Path, sha256: str | None, progress: Progress | None, most_bytes: int) -> None:
    with complete_or_not(path) as unfinished:
        with open(unfinished, "wb") as file:
            digest = _copy(url, file.write, progress, most_bytes)
        if sha256 is not None and digest != sha256:
            raise DownloadError(f"{url}: expected a file with sha256 {sha256}, got {digest}")
    note_digest(path, digest)


def _copy(url: str, write: Callable[[bytes], object], progress: Progress | None, most_bytes: int) -> str:
    digest, done = hashlib.sha256(), 0
    request = Request(url, headers={"User-Agent": "tensormachines"})
    with build_opener(_StayEncrypted).open(request, timeout=TIMEOUT) as answer:
        length = answer.headers.get("Content-Length")
        total = int(length) if length is not None else None
        while piece := answer.read(AT_ONCE):
            done += len(piece)
            if max(done, total or 0) > most_bytes:
                raise DownloadError(f"{url}: the file is larger than {most_bytes / 1e9:.3g} GB")
            write(piece)
            digest.update(piece)
            if progress is not None:
                progress(done, total)
    if total is not None and done != total:
        raise OSError(f"the connection ended after {done} of {total} bytes")
    return digest.hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path, digest: str, expected: str | None) -> None:
    if expected is not None and digest != expected:
        raise DownloadError(
            f"{path}: expected sha256 {expected}, got {digest}. Delete the file to download it again"
        )
