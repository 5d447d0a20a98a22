"""What `make gallery` makes of notebooks, and what it refuses."""

import sys

import nbformat
import pytest

from belib.paths import ROOT

sys.path.insert(0, str(ROOT / "docs"))
from check_site import faults
from pages import STATE, VIEW, for_readers

PAGE = "<article><h1>Title</h1><h2 id='here'>Part</h2>{}</article>"


@pytest.mark.parametrize(
    ("contents", "fault"),
    [
        ("<img src='there.png' alt='dots'><a href='#here'>up</a><a href='https://x.org'>x</a>", ""),
        ("<img src='gone.png' alt='dots'>", "points to gone.png, which is not there"),
        ("<img src='there.png'>", "a figure has no alternative text: there.png"),
        ("<script src='https://cdn.org/x.js'></script>", "loads https://cdn.org/x.js"),
        ("<link rel='stylesheet' href='//cdn.org/x.css'>", "loads //cdn.org/x.css"),
        ("<a href='page.html#gone'>up</a>", "points to page.html#gone, where nothing has that"),
        ("<h4>Deep</h4>", "a heading of level 4 follows one of level 2"),
        ("<h1>Another</h1>", "it has 2 titles"),
    ],
)
def test_each_fault_is_named(contents, fault, tmp_path):
    (tmp_path / "there.png").write_bytes(b"")
    (tmp_path / "page.html").write_text(PAGE.format(contents))
    named = [text.partition(": ")[2] for text in faults(tmp_path)]
    assert len(named) == bool(fault)
    assert all(text.startswith(fault) for text in named)


def test_a_notebook_becomes_a_page_without_widgets():
    v4, html = nbformat.v4, "HTMLModel"
    models = {
        "bar": {"state": {"children": ["IPY_MODEL_left", "IPY_MODEL_middle", "IPY_MODEL_right"]}},
        "left": {"model_name": html, "state": {"value": "collecting: 100%"}},
        "middle": {"model_name": "FloatProgressModel", "state": {"value": 9.0}},
        "right": {"model_name": html, "state": {"value": "&nbsp;9/9 [00:01&lt;00:00]"}},
        "tabs": {"state": {"children": []}},
    }
    outputs = [v4.new_output("display_data", {VIEW: {"model_id": m}}) for m in ("bar", "tabs")]
    alt = {"image/png": {"alt": "Blue is higher."}}
    outputs.append(v4.new_output("display_data", {"image/png": "iVBORw0="}, metadata=alt))
    injected = v4.new_code_cell("runs_dir = 1", metadata={"tags": ["injected-parameters"]})
    cells = [injected, v4.new_code_cell("go()", outputs=outputs)]
    notebook = v4.new_notebook(cells=cells, metadata={"widgets": {STATE: {"state": models}}})
    (cell,) = for_readers(notebook).cells
    assert cell.outputs[0].text == "collecting: 100% 9/9 [00:01<00:00]\n"
    assert cell.outputs[1].text.startswith("(A running notebook")
    assert cell.outputs[2] == outputs[2]
    assert cell.metadata["mystnb"]["image"]["alt"] == "Blue is higher."
    assert "widgets" not in notebook.metadata
