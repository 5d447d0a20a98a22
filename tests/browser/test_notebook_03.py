"""Notebook 03 in JupyterLab as a teacher uses it: run all, drag, press keys, climb."""

import pytest
from waiting import settled, wait_until

pytestmark = pytest.mark.browser


@pytest.fixture
def notebook(page, lab, browser):
    """The notebook, run to its end."""
    page.goto(f"{lab.url}/lab/tree/03_reward_visualization.ipynb")
    # Before both of these JupyterLab would ask which kernel to run it with.
    page.get_by_text("| Idle").wait_for(timeout=60_000)
    wait_until(lab.idle, 60, "a kernel for the notebook")
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".jp-OutputArea-output", has_text="seconds a redraw").wait_for(
        timeout=180_000, state="attached"
    )
    wait_until(lab.idle, 60, "the notebook's end")
    assert page.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
    return page


@pytest.fixture
def widget(notebook):
    """The tabs, in view."""
    tab = notebook.locator(".jupyter-widgets.widget-tab")
    tab.scroll_into_view_if_needed()
    assert notebook.locator(".Toastify__toast").count() == 0, "no news, no questions"
    return tab


def picture(widget):
    return widget.locator("img:visible").get_attribute("src")


def test_the_slider_moves_the_picture(page, widget, screenshots):
    handle = widget.locator(".noUi-handle:visible").first
    readout = widget.locator(".widget-readout:visible").first
    page.screenshot(path=screenshots / "1-opened.png")
    assert readout.inner_text() == "0.50"
    opened = picture(widget)
    handle.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    wait_until(lambda: readout.inner_text() == "0.80", 10, "the keyboard's alpha")
    by_keyboard = settled(lambda: picture(widget))
    assert by_keyboard != opened
    page.screenshot(path=screenshots / "2-keyboard.png")

    assert drag(page, widget, handle) >= 5, "it moves while one drags"
    assert float(readout.inner_text()) > 2
    assert settled(lambda: picture(widget)) not in (opened, by_keyboard)
    page.screenshot(path=screenshots / "3-mouse.png")

    climb(page, widget)
    page.screenshot(path=screenshots / "4-climbed.png")


def drag(page, widget, handle):
    """Drag a handle to the right by mouse; how many pictures were seen on the way."""
    box, seen = handle.bounding_box(), set()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 31):
        page.mouse.move(x + 6 * step, y)
        page.wait_for_timeout(30)
        seen.add(picture(widget))
    page.mouse.up()
    return len(seen)


def climb(page, widget):
    """The second tab: at the largest alpha the most entropy is not the uniform pmf's."""
    page.get_by_role("tab", name="Discrete game").click()
    handle = widget.locator(".noUi-handle:visible").first
    handle.focus()
    page.keyboard.press("End")
    settled(lambda: picture(widget))
    widget.get_by_role("button", name="climb").click()
    widget.get_by_text("more than the uniform pmf").wait_for()
    settled(lambda: picture(widget))
