"""The project's folders, atomic writes, the git revision."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

TEMPORARY = ".tmp"  # suffix of temporary files, whose names begin with a dot

_SOURCE = Path(__file__).resolve().parents[1]
_INSTALLED = not (_SOURCE / "pyproject.toml").exists()

ROOT = Path.cwd() if _INSTALLED else _SOURCE
"""The folder of relative paths, wherever a notebook runs: the repository, or for an installed
package the folder in which Python started."""

PARAMS = Path(__file__).with_name("params") if _INSTALLED else ROOT / "params"
"""The folder of the YAML files of all scales; a wheel has a copy."""


def resolve(path: str | Path) -> Path:
    """Return an absolute path; a relative one is taken from `ROOT`."""
    return ROOT / os.path.expanduser(path)


def make_folder(path: str | Path) -> Path:
    """Create a folder if needed, and return it."""
    folder = resolve(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_atomic(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to disk, then rename it to `path`.

    Readers, also after a crash, see the old content or the new, never a part. After an error, which
    gets the file's name as a note, the temporary file is removed; only a killed process leaves one.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        error.add_note(f"{path} could not be written, and is as it was before")
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Write text atomically."""
    write_atomic(path, lambda file: file.write(text.encode()))


def read_json(path: Path, keys: Iterable[str]) -> dict[str, Any]:
    """Return the object in a JSON file; ValueError if it is none or lacks one of the `keys`."""
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON: {error}") from error
    if not isinstance(values, dict) or not values.keys() >= set(keys):
        rule = f"must hold a JSON object with {', '.join(keys)}"
        raise ValueError(f"{path} {rule}, got {values!r:.80}")
    return values


def git_revision() -> str:
    """Return the commit (12 digits), with `+` if files differ from it; `unknown` without git.

    For an installed package return its version, `v0.1.0`.
    """
    if _INSTALLED:
        return f"v{version('belib')}"
    describe = ("describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+")
    options = {"text": True, "timeout": 10, "stderr": subprocess.DEVNULL}
    try:
        return subprocess.check_output(["git", "-C", ROOT, *describe], **options).strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
