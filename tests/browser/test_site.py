"""The site of `make gallery`, opened from its files: legible at both widths, and alone."""

import numpy as np
import pytest

from belib.coverage.states import StateMap
from belib.paths import ROOT
from belib.widgets import flipbook

pytestmark = pytest.mark.browser
SITE = ROOT / "runs" / "gallery" / "site"
PAGES = sorted(SITE.glob("*.html")) + sorted(SITE.glob("*/*.html"))


@pytest.mark.skipif(not PAGES, reason="`make gallery` makes what this looks at")
@pytest.mark.parametrize("page", [1280, 390], indirect=True)
def test_pages_fit_load_nothing_from_elsewhere_and_set_their_formulas(page, screenshots):
    for path in PAGES:
        page.goto(path.as_uri())
        if page.locator(".math").count():
            page.locator("mjx-container").first.wait_for(state="attached")
        name, width = path.relative_to(SITE).as_posix(), page.viewport_size["width"]
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} scrolls sideways: {wide} > {width}"
        assert page.locator("mjx-merror").count() == 0, name
        broken = "image => !image.complete || image.naturalWidth === 0"
        assert not page.evaluate(f"[...document.images].filter({broken}).length"), name
        if path.parent.name != "api":
            page.screenshot(path=screenshots / f"{path.stem}-{width}.png", full_page=True)
    assert {url.partition(":")[0] for url in page.loaded} <= {"file", "data"}


def test_the_flipbooks_slider_moves_by_keys_and_by_mouse(page, screenshots):
    """Without a kernel, from the page alone."""
    states = StateMap(np.random.default_rng(0).normal(size=(300, 2)), np.arange(1.0, 301), "a test")
    page.set_content(flipbook(states, 2).data)
    slider, shown = page.get_by_role("slider"), page.locator("img:visible")
    assert shown.get_attribute("alt") == "The reward at α = 0.5"
    for key, alpha in (("ArrowRight", "0.6"), ("End", "5"), ("Home", "0.1")):
        slider.press(key)
        assert shown.get_attribute("alt") == f"The reward at α = {alpha}"
        assert page.locator("output").inner_text() == alpha
    box = slider.bounding_box()
    slider.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert 2 < float(shown.get_attribute("alt").split()[-1]) < 3
    page.screenshot(path=screenshots / "flipbook.png")
    assert {url.partition(":")[0] for url in page.loaded} <= {"data"}
