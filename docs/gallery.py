"""The site of `make gallery`: notebooks at smoke size, the API, the data format, the results.

    python docs/gallery.py    # writes runs/gallery/site, which opens from its files

A notebook is executed again when it, `belib` or `params` has changed. Pages that would load
anything from a network, point to nothing, or lack a figure end the build.
"""

import html
import shutil
import sys
import time
from pathlib import Path

import nbformat
import papermill
from check_site import faults
from sphinx.cmd.build import main as sphinx

from belib.paths import ROOT, writable_folder

GALLERY = ROOT / "runs" / "gallery"
SOURCE, SITE, DATA = GALLERY / "source", GALLERY / "site", GALLERY / "data"
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"

MORE = {"04_pretrain": {"compare": ["shannon", "rnd", "smm"]}}
"""Parameters that make more to look at, here and in the notebooks that use its data."""

CONTENTS = """
```{{toctree}}
:hidden:
:caption: Notebooks

{notebooks}
```

```{{toctree}}
:hidden:
:caption: Reference

{reference}
api/index
```
"""


def main() -> int:
    """Build and check the site; the number of what is wrong with it."""
    begun = time.monotonic()
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    for notebook in notebooks:
        execute(notebook)
    write_sources(notebooks)
    if code := sphinx(
        ["-W", "--keep-going", "-q", "-c", str(ROOT / "docs"), str(SOURCE), str(SITE)]
    ):
        return code
    found = faults(SITE)
    print(*found, sep="\n")
    print(f"{SITE / 'index.html'}: {len(found)} faults, {time.monotonic() - begun:.0f} s")
    return len(found)


def execute(notebook: Path) -> None:
    """Execute a notebook, if what was made of it is older than it and what it calls."""
    made = SOURCE / "notebooks" / notebook.name
    causes = [notebook, *ROOT.glob("belib/**/*.py"), *ROOT.glob("params/*.yaml")]
    if made.exists() and made.stat().st_mtime > max(file.stat().st_mtime for file in causes):
        return
    print(f"{notebook.name} ...", end=" ", flush=True)
    begun = time.monotonic()
    given = {"runs_dir": str(DATA)} if "runs_dir: str" in notebook.read_text() else {}
    given |= MORE.get(notebook.stem, {})
    executed = writable_folder(GALLERY / "executed") / notebook.name
    papermill.execute_notebook(
        str(notebook), str(executed), given, kernel_name="python3", progress_bar=False, cwd=ROOT
    )
    writable_folder(made.parent)
    nbformat.write(for_readers(nbformat.read(executed, 4)), made)
    print(f"{time.monotonic() - begun:.0f} s", flush=True)


def for_readers(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An executed notebook as a page: figures have their captions as alternative text, and widgets,
    which need a kernel, are replaced by text."""
    widgets = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    injected = "injected-parameters"  # papermill's, which says where files went
    notebook.cells = [c for c in notebook.cells if injected not in c.metadata.get("tags", [])]
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
            if VIEW in output.get("data", {}):
                view = output.data.pop(VIEW)
                output.data = {"text/markdown": widget_text(widgets, view["model_id"])}
    return notebook


def widget_text(widgets: dict, model: str) -> str:
    """A progress bar's last words; of what else there is, that it needs a kernel."""
    children = widgets.get(model, {}).get("state", {}).get("children", [])
    parts = [widgets.get(child.removeprefix("IPY_MODEL_"), {}) for child in children]
    if not any(part.get("model_name") == "FloatProgressModel" for part in parts):
        return "*In a running notebook there are sliders here; the figures above show the same.*"
    values = (part["state"].get("value", "") for part in parts if "HTML" in part["model_name"])
    return f"`{' '.join(html.unescape(' '.join(values)).split())}`"


def write_sources(notebooks: list[Path]) -> None:
    """What Sphinx reads, in the project's own layout, so that links between pages hold in both."""
    for page in (*ROOT.glob("docs/*.md"), *ROOT.glob("results/*.md"), *ROOT.glob("results/*.png")):
        copy = SOURCE / page.relative_to(ROOT)
        writable_folder(copy.parent)
        shutil.copyfile(page, copy)
    reference = sorted(f"docs/{page.stem}" for page in ROOT.glob("docs/*.md"))
    contents = CONTENTS.format(
        notebooks="\n".join(f"notebooks/{notebook.stem}" for notebook in notebooks),
        reference="\n".join([*reference, "results/README"]),
    )
    write(SOURCE / "index.md", (ROOT / "README.md").read_text() + contents)
    write_api()


def write_api() -> None:
    """A page a module; a package with `__all__` speaks for its modules."""
    pages = []
    for path in sorted(ROOT.glob("belib/**/*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        package = path.parent / "__init__.py"
        told = path != package and len(parts) > 2 and "__all__" in package.read_text()
        if len(parts) < 2 or parts[-1] == "__main__" or parts == ("belib", "__init__") or told:
            continue
        name = ".".join(part for part in parts if part != "__init__")
        automodule = f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"
        write(SOURCE / "api" / f"{name}.md", f"# {name}\n\n{automodule}")
        pages.append(name)
    listed = "\n".join(pages)
    write(SOURCE / "api" / "index.md", f"# Modules\n\n```{{toctree}}\n{listed}\n```\n")


def write(page: Path, text: str) -> None:
    """Write a page, unless it says that already: Sphinx reads again what is newer."""
    writable_folder(page.parent)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
