"""What is wrong with a folder of HTML pages that should work as files, without a network."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
"""The attributes by which a page loads something."""
LOADING = r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)"
"""How a style sheet loads something from elsewhere."""


def faults(site: Path) -> list[str]:
    """A line for each thing that is loaded from a network, a link to nothing, a figure without its
    alternative text, a heading that skips a level, or a notebook's page without figures."""
    pages = sorted(site.rglob("*.html"))
    found = [f"{page.relative_to(site)}: {fault}" for page in pages for fault in _of_page(page)]
    for sheet in site.rglob("*.css"):
        for url in re.findall(LOADING, sheet.read_text()):
            found.append(f"{sheet.relative_to(site)}: loads {url}")
    return found


def _of_page(page: Path) -> Iterator[str]:
    soup = _read(page)
    for tag, attribute in LOADED.items():
        for element in soup.find_all(tag, **{attribute: True}):
            yield from _of_reference(page, element[attribute], loaded=True)
    for element in soup.find_all("a", href=True):
        yield from _of_reference(page, element["href"], loaded=False)
    for image in soup.find_all("img"):
        if not (image.get("alt") or "").strip() or image["alt"] == image["src"]:
            yield f"a figure has no alternative text: {image['src']}"
    if page.parent.name == "notebooks" and not soup.select("article .cell_output img"):
        yield "a notebook has no figures"
    yield from _of_headings(soup)


def _of_reference(page: Path, reference: str, *, loaded: bool) -> Iterator[str]:
    """A link elsewhere is nobody's fault; anything loaded from elsewhere is."""
    url = urlsplit(reference)
    if url.scheme == "data":
        return
    if url.scheme or url.netloc:
        if loaded:
            yield f"loads {reference}"
        return
    target = (page.parent / unquote(url.path)).resolve() if url.path else page
    if not target.is_file():
        yield f"points to {reference}, which is not there"
    elif url.fragment and target.suffix == ".html" and url.fragment not in _anchors(target):
        yield f"points to {reference}, where nothing has that name"


def _of_headings(soup: BeautifulSoup) -> Iterator[str]:
    levels = [int(each.name[1]) for each in soup.select("article :is(h1, h2, h3, h4, h5, h6)")]
    if soup.select("article") and levels.count(1) > 1:
        yield f"it has {levels.count(1)} titles"
    for before, after in pairwise(levels):
        if after > before + 1:
            yield f"a heading of level {after} follows one of level {before}"


@cache
def _read(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(), "lxml")


@cache
def _anchors(page: Path) -> frozenset[str]:
    soup = _read(page)
    return frozenset(each.get("id") or each.get("name") for each in soup.select("[id], a[name]"))
