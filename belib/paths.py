"""Where things are, and how files are written so that none is ever found half-written."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, BinaryIO

TEMPORARY = ".tmp"
"""How the name of a file that is being written ends; it begins with a dot."""

_SOURCE = Path(__file__).resolve().parents[1]
_INSTALLED = not (_SOURCE / "pyproject.toml").exists()

ROOT = Path.cwd() if _INSTALLED else _SOURCE
"""The project's folder, which relative paths mean: notebooks run in theirs, papermill elsewhere.
Where only the package is installed, the folder in which Python started."""

PARAMS = Path(__file__).with_name("params") if _INSTALLED else ROOT / "params"
"""The YAML files of all scales, of which a wheel has a copy."""


def resolve(path: str | Path) -> Path:
    """`path`, taken from the project's folder where it is relative."""
    return ROOT / os.path.expanduser(path)


def writable_folder(path: str | Path) -> Path:
    """Create the folder if needed and prove that a file can be written in it.

    Raises OSError (PermissionError, NotADirectoryError, ...) that names the folder.
    """
    folder = resolve(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(f"cannot write in {folder}: {error.strerror or error}") from error
    return folder


def write_atomic(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to disk, then rename it to `path`.

    A reader, or a crash at any moment, finds the old content or the new, never a part.

    Raises OSError that names the file where the disk is full or fails. Whatever is raised, the old
    content stays and the temporary file is removed; only a killed process leaves one.
    """
    temporary, before = path.with_name(f".{path.name}{TEMPORARY}"), sys.exception()
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        cause = _disk_error(error, before)
        if cause is None:
            raise
        raise _explained(cause, path) from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _disk_error(error: BaseException | None, before: BaseException | None) -> OSError | None:
    """The OSError behind an exception (torch raises RuntimeError because of it), if there is one.

    `before` was being handled when the write began: it and what led to it are none of its causes.
    """
    if not isinstance(error, Exception):
        return None
    while error is not None and error is not before:
        if isinstance(error, OSError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _explained(error: OSError, path: Path) -> OSError:
    advice = "It is as it was before"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        advice += ": free space and run again, what is on disk is continued"
    return type(error)(error.errno, f"cannot write {path}: {error.strerror or error}. {advice}")


def write_text(path: Path, text: str) -> None:
    """`write_atomic` for text."""
    write_atomic(path, lambda file: file.write(text.encode()))


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, without a byte order mark; ValueError that names any other."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error}") from error


def read_json(path: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """The object that a JSON file holds; ValueError that names a file of anything else.

    Args:
        path: the file.
        keys: that the object must have.
    """
    text = read_text(path)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold a JSON object, got {type(found).__name__}")
    missing = [key for key in keys if key not in found]
    if missing:
        raise ValueError(f"{path} must have {', '.join(missing)}, got {', '.join(found) or 'none'}")
    return found


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[IO[str]]:
    """Hold the lock of a file, which is created, opened for text, and removed at the end.

    The kernel keeps the lock (flock) and releases it when its holder dies in any way, so that a
    file left by a killed process holds nothing. Network file systems that do not share locks
    between hosts do not see holders on other hosts.

    Args:
        path: of the lock's file.
        wait: for the holder to end; otherwise raises BlockingIOError with the file's text.
    """
    file = _flocked(path, wait)
    while not (path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())):
        file.close()  # its last holder has just removed it
        file = _flocked(path, wait)
    with file:
        try:
            yield file
        finally:
            path.unlink(missing_ok=True)


def _flocked(path: Path, wait: bool) -> IO[str]:
    file = open(path, "a+")  # noqa: SIM115, closed by the caller
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        with file:
            if isinstance(error, BlockingIOError):
                file.seek(0)
                error.strerror = file.read()
            raise
    return file


def git_revision() -> str:
    """The project's commit, 12 digits, `+` where files differ from it; `unknown` without git.

    The version, `v0.1.0`, where only the package is installed.
    """
    if _INSTALLED:
        return f"v{version('belib')}"
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(
            [*command, "--dirty=+"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
