"""Pieces of a web page: in go plain texts, tables and pictures, out comes HTML with all of them escaped.

Always true: no piece takes HTML from outside this module but a body that other pieces made; a page loads nothing.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pyarrow as pa

from predcube.pipeline.printing import cells

STYLE = """
:root { color-scheme: light dark; --ink: #1f2937; --quiet: #5b6472; --paper: #ffffff; --line: #d9dde3; --warn: #fff4d6;
  --warn-ink: #6b4700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --quiet: #a3acb9; --paper: #14171c; --line: #343b46;
  --warn: #3d3010; --warn-ink: #ffdf8f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 72rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2, summary { font-size: 1.15rem; font-weight: 600; margin: 2.2rem 0 .6rem; overflow-wrap: anywhere; }
summary { cursor: pointer; }
p, figcaption { color: var(--quiet); max-width: 60rem; }
.notice { background: var(--warn); color: var(--warn-ink); padding: .6rem .9rem; border-radius: .4rem; }
.scroll { overflow-x: auto; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0 1.6rem; }
figure img { max-width: 100%; height: auto; background: #ffffff; border-radius: .4rem; padding: .4rem; }
@media (max-width: 45rem) { figure img { max-width: none; width: 46rem; } }
pre { overflow-x: auto; font-size: .82rem; border: 1px solid var(--line); border-radius: .4rem; padding: .8rem; }
footer { margin-top: 3rem; color: var(--quiet); font-size: .85rem; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The frame of a page. ``notice`` stands before everything else, where it is not empty."""

    title: str
    subtitle: str
    notice: str = ""

    def html(self, body: str, footer: str) -> str:
        """The whole document around a body that the pieces below made."""
        notice = f'<p class="notice">{escape(self.notice)}</p>' if self.notice else ""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n<body>"
            f"<h1>{escape(self.title)}</h1><p>{escape(self.subtitle)}</p>{notice}\n{body}"
            f"<footer>{escape(footer)}</footer></body></html>\n"
        )


def section(title: str, body: str, *, folded: bool = False) -> str:
    """A titled part, or one that unfolds."""
    if folded:
        return f"<details><summary>{escape(title)}</summary>{body}</details>\n"
    return f"<section><h2>{escape(title)}</h2>{body}</section>\n"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def preformatted(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def listing(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    return _table([(h, False) for h in heads], lines)


def rows_table(rows: pa.Table) -> str:
    """An Arrow table, a quantity and its interval in one column, numbers with the digits their interval supports."""
    heads, lines = cells(rows)
    return _table(heads, lines)


def picture(svg: bytes, title: str, caption: str) -> str:
    """An SVG picture, kept in an image so that its names cannot meet those of another."""
    data = base64.b64encode(svg).decode()
    return (
        f'<figure><div class="scroll"><img src="data:image/svg+xml;base64,{data}" alt="{escape(title)}"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def _table(heads: Sequence[tuple[str, bool]], lines: Sequence[Sequence[str]]) -> str:
    kinds = [' class="number"' if number else "" for _, number in heads]
    head = "".join(f"<th{k}>{escape(text)}</th>" for k, (text, _) in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{escape(text)}</td>" for k, text in zip(kinds, line, strict=True)) + "</tr>"
        for line in lines
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
