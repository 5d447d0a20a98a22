"""Where things are, and how files are written so that none is ever found half-written."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_SOURCE = Path(__file__).resolve().parents[1]

ROOT = _SOURCE if (_SOURCE / "pyproject.toml").exists() else Path.cwd()
"""The project's folder, which relative paths mean: notebooks run in theirs, papermill elsewhere."""


def resolve(path: str | Path) -> Path:
    """`path`, taken from the project's folder where it is relative."""
    return ROOT / Path(path).expanduser()


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
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """`write_atomic` for text."""
    write_atomic(path, lambda file: file.write(text.encode()))


def git_revision() -> str:
    """The project's commit, 12 digits, `+` where files differ from it; `unknown` without git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(
            [*command, "--dirty=+"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
