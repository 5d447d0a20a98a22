"""What `make gallery` makes of notebooks, and what it refuses."""

import sys

import nbformat
import pytest

from belib.paths import ROOT

sys.path.insert(0, str(ROOT / "docs"))
from check_site import faults
from pages import STATE, VIEW, for_readers

PAGE = "<article><h1>Title</h1><h2 id='here'>Part</h2>{}</article>"


@pytest.fixture
def faults_of(tmp_path):
    """The faults of a page of these contents; `there.png` stands beside it."""

    def find(contents, name="page.html"):
        (tmp_path / "there.png").write_bytes(b"")
        page = tmp_path / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(PAGE.format(contents))
        return [fault.partition(": ")[2] for fault in faults(tmp_path)]

    return find


@pytest.mark.parametrize(
    ("contents", "fault"),
    [
        ("<img src='there.png' alt='dots'><a href='#here'>up</a>", None),
        ("<a href='https://x.org'>out</a>", None),
        ("<img src='gone.png' alt='dots'>", "points to gone.png, which is not there"),
        ("<img src='there.png'>", "a figure has no alternative text: there.png"),
        ("<script src='https://cdn.org/x.js'></script>", "loads https://cdn.org/x.js"),
        ("<link rel='stylesheet' href='//cdn.org/x.css'>", "loads //cdn.org/x.css"),
        ("<a href='gone.html'>out</a>", "points to gone.html, which is not there"),
        ("<a href='page.html#gone'>up</a>", "points to page.html#gone, where nothing has that"),
        ("<h4>Deep</h4>", "a heading of level 4 follows one of level 2"),
        ("<h1>Another</h1>", "it has 2 titles"),
    ],
)
def test_each_fault_is_named(faults_of, contents, fault):
    named = faults_of(contents)
    assert len(named) == (fault is not None)
    assert all(text.startswith(fault) for text in named)


def test_a_notebook_without_figures_and_a_sheet_from_a_network_are_faults(faults_of, tmp_path):
    (tmp_path / "x.css").write_text("@import url(https://fonts.org/a.css);")
    named = faults_of("", "notebooks/01.html")
    assert named == ["a notebook has no figures", "loads https://fonts.org/a.css"]


def test_a_notebook_becomes_a_page_without_widgets():
    v4 = nbformat.v4
    bar = {"children": ["IPY_MODEL_left", "IPY_MODEL_middle", "IPY_MODEL_right"]}
    models = {
        "bar": {"model_name": "HBoxModel", "state": bar},
        "left": {"model_name": "HTMLModel", "state": {"value": "collecting: 100%"}},
        "middle": {"model_name": "FloatProgressModel", "state": {"value": 9.0}},
        "right": {"model_name": "HTMLModel", "state": {"value": "&nbsp;9/9 [00:01&lt;00:00]"}},
        "tabs": {"model_name": "TabModel", "state": {"children": []}},
    }
    shown = [v4.new_output("display_data", {VIEW: {"model_id": m}}) for m in ("bar", "tabs")]
    alt = {"image/png": {"alt": "Blue is higher."}}
    figure = v4.new_output("display_data", {"image/png": "iVBORw0="}, metadata=alt)
    cells = [
        v4.new_code_cell("runs_dir = 1", metadata={"tags": ["injected-parameters"]}),
        v4.new_code_cell("go()", outputs=[*shown, figure]),
    ]
    notebook = v4.new_notebook(cells=cells, metadata={"widgets": {STATE: {"state": models}}})
    (cell,) = for_readers(notebook).cells
    progress, sliders, kept = cell.outputs
    assert progress.text == "collecting: 100% 9/9 [00:01<00:00]\n"
    assert sliders.text.startswith("(In a running notebook")
    assert kept == figure
    assert cell.metadata["mystnb"]["image"]["alt"] == "Blue is higher."
    assert "widgets" not in notebook.metadata
