"""Sphinx's settings for `make gallery`: every page works from its file, without a network."""

import logging
import re
from importlib.metadata import files

# A package of the theme turns on all that packages log; this one logs at its import.
logging.getLogger("absl").setLevel(logging.WARNING)

project = "belib"
author = "The belib authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "index"
html_theme = "furo"
html_title = "belib"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

# MathJax in one file, from a package; Sphinx would load it from the network.
MATHJAX = "tex-svg.js"
(found,) = (file for file in files("sphinx-mathjax-offline") if file.name == MATHJAX)
html_static_path = ["gallery.css", str(found.locate())]
html_css_files = ["gallery.css"]
mathjax_path = MATHJAX
mathjax3_config = {"options": {"enableMenu": False}}  # whose parts it would look for elsewhere

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = True
nb_execution_mode = "off"  # docs/gallery.py has executed them
nb_merge_streams = True
nb_render_markdown_format = "myst"  # outputs have formulas
nb_ipywidgets_js = {}  # it would come from the network; docs/gallery.py puts text in its place

default_role = "code"  # docstrings write `names` as Markdown does
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
python_maximum_signature_line_length = 88
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of others, and of modules that are not public


def as_written(app, what, name, obj, options, lines):
    """Turn a docstring into reStructuredText: `names`, tables and, in modules, indented blocks
    keep their meaning; no other character has one."""
    written, before = [], ""
    for line in lines:
        indented = what == "module" and line.startswith("    ")
        kind = "table" if line.startswith(("| ", "|-")) else "drawn" if indented else ""
        if kind != before:
            written += {"table": TABLE, "drawn": DRAWN, "": [""]}[kind]
        written += {"table": cells, "drawn": drawn, "": plain}[kind](line)
        before = kind
    if what in ("attribute", "data", "property"):
        written.insert(0, "")  # or napoleon takes what stands before a colon for a type
    lines[:] = written


TABLE = ["", ".. list-table::", "   :header-rows: 1", ""]
DRAWN = ["", ".. code-block:: none", ""]


def plain(line):
    """Return a line of text with its bars and asterisks escaped."""
    return [re.sub(r"(`[^`]*`)|([|*])", lambda match: match[1] or rf"\{match[2]}", line)]


def drawn(line):
    """Return a line of an indented block."""
    return [f"   {line}"]


def cells(line):
    """Return a row of a table, nothing for the line under its head."""
    texts = [plain(cell.strip())[0] for cell in line.strip("|").split("|")]
    if not "".join(texts).strip("-:"):
        return []
    return [f"   {'*' if i == 0 else ' '} - {text}" for i, text in enumerate(texts)]


def without_aliases(app, what, name, obj, skip, options):
    """Skip a named tuple's fields without a docstring: its signature has them."""
    return True if str(obj.__doc__).startswith("Alias for field number") else None


def setup(app):
    """Connect the functions above; Sphinx calls this."""
    app.connect("autodoc-process-docstring", as_written, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", without_aliases)
