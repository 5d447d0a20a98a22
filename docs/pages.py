"""An executed notebook as a page that needs neither a kernel nor a network."""

import html

import nbformat
from nbformat import NotebookNode

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def for_readers(notebook: NotebookNode) -> NotebookNode:
    """Return an executed notebook as a page: captions are the figures' alternative texts, and text
    stands in place of widgets, which need a kernel."""
    widgets = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    injected = "injected-parameters"  # papermill's, which says where files went
    notebook.cells = [c for c in notebook.cells if injected not in c.metadata.get("tags", [])]
    for cell in (each for each in notebook.cells if each.cell_type == "code"):
        cell.outputs = [without_widget(output, widgets) for output in cell.outputs]
        for output in cell.outputs:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
    return notebook


def without_widget(output: NotebookNode, widgets: dict) -> NotebookNode:
    """Return a widget's output as text; other outputs as they are."""
    if VIEW not in output.get("data", {}):
        return output
    text = widget_text(widgets, output.data[VIEW]["model_id"])
    return nbformat.v4.new_output("stream", name="stdout", text=f"{text}\n")


def widget_text(widgets: dict, model: str) -> str:
    """Return a progress bar's last text; for other widgets, that they need a kernel."""
    children = widgets.get(model, {}).get("state", {}).get("children", [])
    parts = [widgets.get(child.removeprefix("IPY_MODEL_"), {}) for child in children]
    if not any(part.get("model_name") == "FloatProgressModel" for part in parts):
        return "(A running notebook has sliders here.)"
    values = (part["state"].get("value", "") for part in parts if "HTML" in part["model_name"])
    return " ".join(html.unescape(" ".join(values)).split())
