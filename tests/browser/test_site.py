"""The site of `make gallery`, opened from its files: legible at both widths, and alone."""

import pytest

from belib.paths import ROOT

pytestmark = pytest.mark.browser
SITE = ROOT / "runs" / "gallery" / "site"
PAGES = sorted(SITE.glob("*.html")) + sorted(SITE.glob("*/*.html"))


@pytest.fixture(params=[1280, 390], ids=lambda width: f"{width}px")
def sheet(browser, request):
    """A page of a width that keeps what it loads and complains of."""
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.loaded, page.errors = [], []
    page.on("request", lambda asked: page.loaded.append(asked.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    page.close()


@pytest.mark.skipif(not PAGES, reason="`make gallery` makes what this looks at")
def test_pages_fit_load_nothing_from_elsewhere_and_set_their_formulas(sheet, screenshots):
    for path in PAGES:
        sheet.goto(path.as_uri())
        if sheet.locator(".math").count():
            sheet.locator("mjx-container").first.wait_for(state="attached")
        name, width = path.relative_to(SITE).as_posix(), sheet.viewport_size["width"]
        wide = sheet.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} scrolls sideways: {wide} > {width}"
        assert sheet.locator("mjx-merror").count() == 0, name
        broken = "image => !image.complete || image.naturalWidth === 0"
        assert not sheet.evaluate(f"[...document.images].filter({broken}).length"), name
        if path.parent.name != "api":
            sheet.screenshot(path=screenshots / f"{path.stem}-{width}.png", full_page=True)
    assert {url.partition(":")[0] for url in sheet.loaded} <= {"file", "data"}
    assert sheet.errors == []
