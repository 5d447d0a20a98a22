"""Notebook 03 in JupyterLab as a teacher uses it: run all, press keys, drag, climb."""

import re

import pytest

pytestmark = pytest.mark.browser


def test_the_slider_moves_the_picture(page, lab, screenshots):
    from playwright.sync_api import expect

    page.goto(f"{lab.url}/lab/tree/03_reward_visualization.ipynb")
    # Before both of these JupyterLab would ask which kernel to run it with.
    page.get_by_text("| Idle").wait_for(timeout=60_000)
    lab.wait_until_idle()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.get_by_text("Run All Cells", exact=True).click()
    timed = page.locator(".jp-OutputArea-output", has_text="seconds a redraw")
    timed.wait_for(timeout=180_000, state="attached")
    lab.wait_until_idle()
    assert page.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
    widget = page.locator(".jupyter-widgets.widget-tab")
    widget.scroll_into_view_if_needed()
    assert page.locator(".Toastify__toast").count() == 0, "no news, no questions"

    handle = widget.locator(".noUi-handle:visible").first
    readout = widget.locator(".widget-readout:visible").first
    picture = widget.locator("img:visible")
    opened = picture.get_attribute("src")
    page.screenshot(path=screenshots / "1-opened.png")
    expect(readout).to_have_text("0.50")
    handle.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    expect(readout).to_have_text("0.80")
    expect(picture).not_to_have_attribute("src", opened)
    page.screenshot(path=screenshots / "2-keyboard.png")

    # drag to the right by mouse: it moves while one drags
    handle.hover()
    page.mouse.down()
    box, pictures = handle.bounding_box(), set()
    for step in range(1, 31):
        page.mouse.move(box["x"] + box["width"] / 2 + 6 * step, box["y"] + box["height"] / 2)
        page.wait_for_timeout(30)
        pictures.add(picture.get_attribute("src"))
    page.mouse.up()
    assert len(pictures) >= 5
    expect(readout).to_have_text(re.compile(r"[2-5]\.\d\d"))
    page.screenshot(path=screenshots / "3-mouse.png")

    # at the largest alpha the most entropy is not the uniform pmf's
    page.get_by_role("tab", name="Discrete game").click()
    widget.locator(".noUi-handle:visible").first.focus()
    page.keyboard.press("End")
    expect(widget.locator(".widget-readout:visible").first).to_have_text("5.00")
    widget.get_by_role("button", name="climb").click()
    widget.get_by_text("more than the uniform pmf").wait_for()
    page.screenshot(path=screenshots / "4-climbed.png")

    # the slider below needs no kernel
    page.locator("figure input[type=range]").press("End")
    expect(page.get_by_alt_text("The reward at α = 5", exact=True)).to_be_visible()
