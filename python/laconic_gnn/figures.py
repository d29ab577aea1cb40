"""Pages and pictures that the program has drawn, as notebooks show them."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path


class Page:
    """A page in a file; a notebook shows it in a frame.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def text(self) -> str:
        """The page as HTML, with its pictures in it."""
        return self.path.read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame, since the page has styles of its own.
        return f'<iframe srcdoc="{html.escape(self.text)}" width="100%" height="720" style="border:0"></iframe>'

    def __repr__(self) -> str:
        return f"Page({str(self.path)!r})"


class Picture:
    """One or several pictures as SVG; a notebook shows them, :meth:`save` writes them.

    Attributes:
        svgs: each as text.
    """

    def __init__(self, svgs: list[str], style: str = "") -> None:
        self.svgs = svgs
        # Rules that a page has for all of its pictures.
        self._style = style

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ``.svg``; of several pictures one below the other."""
        Path(path).write_text(self._repr_svg_(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        # As an image, and not among a notebook's own elements, which the rules would change, too.
        if len(self.svgs) == 1 and not self._style:
            text = self.svgs[0]
        else:
            sizes = [_size(svg) for svg in self.svgs]
            tops = [sum(height for _, height in sizes[:place]) for place in range(len(sizes))]
            inner = "".join(svg.replace("<svg ", f'<svg y="{top}" ', 1) for svg, top in zip(self.svgs, tops))
            width, height = max((width for width, _ in sizes), default=0), sum(height for _, height in sizes)
            ground = f'<style>{self._style}</style><rect width="100%" height="100%" class="ground"/>'
            text = f'<svg width="{width}" height="{height}">{ground}{inner}</svg>'
        if "xmlns=" not in text.partition(">")[0]:
            # A page does without the name space, a file does not.
            text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return text

    def __repr__(self) -> str:
        return f"Picture({len(self.svgs)} drawn)"


def pictures(page: Page, label: str) -> Picture:
    """The pictures of a page whose label has these words; where they are drawn for wide and narrow screens, the first."""
    found: dict[str, str] = {}
    for svg in re.findall(r"<svg .*?</svg>", page.text, flags=re.DOTALL):
        name = re.search(r'aria-label="([^"]*)"', svg)
        if name and label in name.group(1):
            found.setdefault(name.group(1), svg)
    # The rules about pictures are the last ones of a page's style.
    rules = page.text.partition("</style>")[0]
    return Picture(list(found.values()), rules[rules.index("svg .ground") :])


def _size(svg: str) -> tuple[float, float]:
    """The width and height that a picture says."""
    start = svg.partition(">")[0]
    return tuple(float(re.search(rf'\b{side}="([\d.]+)"', start).group(1)) for side in ("width", "height"))  # type: ignore
