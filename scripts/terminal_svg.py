#!/usr/bin/env python3
"""Converts a recording by `script` to a picture of the terminal as SVG:

    scripts/terminal_svg.py TYPESCRIPT OUT.svg --until TEXT [--title TEXT]

The picture is the last whole view before TEXT was written. Knows what our live view writes: lines, carriage returns, cursor up, erase,
and the colours 1, 2, 31 to 36.
"""

import argparse
import html
import pathlib
import re

ESCAPE = re.compile(r"\x1b\[(\??)(\d*)(?:;\d+)*([A-Za-z])")
COLOURS = {31: "#d9534f", 32: "#5fb55f", 33: "#d6a53a", 34: "#5b8dd6", 35: "#b07cc6", 36: "#4fb3bf"}
LETTER, LINE, PAD = 8.4, 17, 14


def screen(text):
    """Rows of (letter, style), as in a terminal of unlimited height."""
    rows, row, column, style = [[]], 0, 0, ()
    at = 0
    while at < len(text):
        found = ESCAPE.match(text, at)
        if found:
            number, what = int(found[2] or 0), found[3]
            if what == "A":
                row = max(0, row - max(number, 1))
            elif what == "K":
                rows[row] = rows[row][:column] if number == 0 else []
            elif what == "m":
                style = () if number == 0 else (*style, number)
            at = found.end()
            continue
        letter = text[at]
        at += 1
        if letter == "\n":
            row += 1
            if row == len(rows):
                rows.append([])
        elif letter == "\r":
            column = 0
        elif letter >= " ":
            rows[row] += [(" ", ())] * (column + 1 - len(rows[row]))
            rows[row][column] = (letter, style)
            column += 1
    return rows


def runs(row):
    """Words of one style: [column, letters, style]; spaces only advance the column."""
    found, last = [], None
    for column, (letter, style) in enumerate(row):
        if letter == " ":
            last = None
            continue
        if last is not None and last[2] == style:
            last[1] += letter
        else:
            last = [column, letter, style]
            found.append(last)
    return found


def attributes(style):
    said = [f'fill="{COLOURS[n]}"' for n in style if n in COLOURS]
    said += ['font-weight="bold"'] if 1 in style else []
    said += ['opacity="0.6"'] if 2 in style else []
    return " ".join(said)


def svg(rows, title):
    width = max(len(row) for row in rows) * LETTER + 2 * PAD
    height = len(rows) * LINE + 2 * PAD
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
             f"<title>{html.escape(title)}</title>", f'<rect width="{width:.0f}" height="{height:.0f}" rx="6" fill="#1c2128"/>',
             '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#d5dae0">']
    for number, row in enumerate(rows):
        for column, letters, style in runs(row):
            lines.append(f'<text x="{PAD + column * LETTER:.1f}" y="{PAD + 13 + number * LINE}" textLength="{len(letters) * LETTER:.1f}" '
                         f'lengthAdjust="spacingAndGlyphs" {attributes(style)}>{html.escape(letters)}</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("typescript", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--until", required=True)
    parser.add_argument("--title", default="a terminal")
    args = parser.parse_args()
    text = args.typescript.read_bytes().decode(errors="replace").partition("\n")[2]  # the first line is by `script` itself
    before, found, _ = text.partition(args.until)
    if not found:
        raise SystemExit(f"error: {args.until!r} was never written")
    drawn = [up.start() for up in re.finditer(r"\x1b\[\d+A", before)]  # a complete view ends where the next one moves up
    rows = screen(before[:drawn[-1]] if drawn else before)
    while rows and not any(letter.strip() for letter, _ in rows[-1]):
        rows.pop()
    args.out.write_text(svg(rows, args.title))


if __name__ == "__main__":
    main()
