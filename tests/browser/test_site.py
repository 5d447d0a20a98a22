"""The site of `make gallery`, opened from its files: legible at both widths, and alone."""

import pytest

from belib.paths import ROOT

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
