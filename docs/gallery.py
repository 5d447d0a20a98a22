"""The site of `make gallery`: notebooks at smoke size, the API, the data format, the results.

    python docs/gallery.py    # writes runs/gallery/site, which opens from its files

A notebook is executed again when it, `belib` or `params` has changed, the report's also with its
tables. Pages that would load anything from a network, point to nothing, or lack a figure end the
build.
"""

import shutil
import sys
import time
from pathlib import Path

import nbformat
import papermill
from check_site import faults
from pages import for_readers
from sphinx.cmd.build import main as sphinx

from belib.paths import ROOT, make_folder

GALLERY = ROOT / "runs" / "gallery"
SOURCE, SITE, DATA = GALLERY / "source", GALLERY / "site", GALLERY / "data"

COLLECTOR, REPORT = "04_pretrain", "07_report"
GIVEN = {
    COLLECTOR: {"compare": ["shannon", "rnd", "smm"]},  # more to look at, in 05 and 06 as well
}
"""Parameters that are not the notebooks' own defaults, beside `runs_dir`."""

REFERENCE = (
    "docs/estimators",
    "docs/rewards",
    "docs/environments",
    "docs/datasets",
    "docs/running",
    "docs/limits",
    "docs/representation",
    "docs/study",
    "docs/gate",
    "workflow/README",
    "results/README",
    "results/laptop/README",
    "CONTRIBUTING",
    "CHANGELOG",
)

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
    """Build and check the site; return how many faults it has."""
    begun = time.monotonic()
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not (ROOT / "results" / "study").exists():  # the tables that the report reads
        notebooks = [notebook for notebook in notebooks if notebook.stem != REPORT]
    executed = [execute(notebook) for notebook in notebooks]
    for folder in (SOURCE, SITE):  # pages whose source has gone must go, too
        shutil.rmtree(folder, ignore_errors=True)
    write_sources(executed)
    options = ["-W", "--keep-going", "-q", "-c", str(ROOT / "docs")]  # a warning is a fault
    if code := sphinx([*options, str(SOURCE), str(SITE)]):
        return code
    problems, seconds = faults(SITE), time.monotonic() - begun
    print(*problems, f"{SITE / 'index.html'}: {len(problems)} faults, {seconds:.0f} s", sep="\n")
    return len(problems)


def execute(notebook: Path) -> Path:
    """Execute a notebook, unless that was done after its last change; return the executed one."""
    executed = make_folder(GALLERY / "executed") / notebook.name
    causes = [notebook, *ROOT.glob("belib/**/*.py"), *ROOT.glob("params/*.yaml")]
    causes += ROOT.glob("results/**/*.csv") if notebook.stem == REPORT else []
    if executed.exists() and executed.stat().st_mtime > max(c.stat().st_mtime for c in causes):
        return executed
    print(f"{notebook.name} ...", end=" ", flush=True)
    begun, unfinished = time.monotonic(), executed.with_suffix(".unfinished.ipynb")
    given = {"runs_dir": str(DATA)} if "runs_dir: str" in notebook.read_text() else {}
    given |= GIVEN.get(notebook.stem, {})
    if notebook.stem == COLLECTOR:  # its datasets are collected again
        shutil.rmtree(DATA, ignore_errors=True)
    options = {"kernel_name": "python3", "progress_bar": False, "cwd": ROOT}
    options["extra_arguments"] = ["--log-level=40"]  # no warning that this machine could listen
    papermill.execute_notebook(str(notebook), str(unfinished), given, **options)
    unfinished.replace(executed)
    print(f"{time.monotonic() - begun:.0f} s", flush=True)
    return executed


def write_sources(executed: list[Path]) -> None:
    """Write what Sphinx reads, in the project's layout: links between pages hold in both."""
    for notebook in executed:
        page = for_readers(nbformat.reads(notebook.read_text().replace(f"{ROOT}/", ""), 4))
        write(SOURCE / "notebooks" / notebook.name, nbformat.writes(page))
    shutil.copytree(ROOT / "results", SOURCE / "results")
    reference = [page for page in REFERENCE if (ROOT / f"{page}.md").exists()]
    for page in reference:
        write(SOURCE / f"{page}.md", (ROOT / f"{page}.md").read_text())
    names = "\n".join(f"notebooks/{notebook.stem}" for notebook in executed)
    contents = CONTENTS.format(notebooks=names, reference="\n".join(reference))
    write(SOURCE / "index.md", (ROOT / "README.md").read_text() + contents)
    write_api()


def write_api() -> None:
    """Write a page for each module."""
    pages = []
    for path in sorted(ROOT.glob("belib/**/*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name == "belib" or name.endswith("__main__"):
            continue
        automodule = f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"
        write(SOURCE / "api" / f"{name}.md", f"# {name}\n\n{automodule}")
        pages.append(name)
    listed = "\n".join(pages)
    write(SOURCE / "api" / "index.md", f"# Modules\n\n```{{toctree}}\n{listed}\n```\n")


def write(page: Path, text: str) -> None:
    """Write a page; make its folder if need be."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
