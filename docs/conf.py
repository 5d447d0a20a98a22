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
nitpick_ignore_regex = [("py:.*", r"(?!belib\.).*")]  # what others document is not linked to


def as_written(app, what, name, obj, options, lines):
    """Docstrings are plain text with `names`: tables and indented blocks of modules stay as drawn,
    and no other character means anything to Sphinx."""
    written, before = [], False
    for line in lines:
        drawn = line.startswith("|") or (what == "module" and line.startswith("    "))
        if drawn != before:
            written += ["", "::", ""] if drawn else [""]
        plain = re.sub(r"(`[^`]*`)|([|*])", lambda m: m[1] or rf"\{m[2]}", line)
        written.append(f"    {line}" if drawn else plain)
        before = drawn
    lines[:] = written


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", as_written, priority=400)  # before napoleon
