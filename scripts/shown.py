#!/usr/bin/env python3
"""Extracts words and numbers from the pictures of README.md, to detect outdated ones:

    scripts/shown.py page HTML            of a device's page, as JSON
    scripts/shown.py terminal SVG         of a picture by scripts/terminal_svg.py

scripts/pictures stores the output with the pictures (docs/pictures/shown.json), and tests/page/pictures.py compares it with a
current demo. Words exclude numbers; numbers are those that depend on the product, not on the moment.
"""

import html
import json
import pathlib
import re
import sys

UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def amount(text):
    """ "1.3 MB" -> 1300000.0, "97.5 %" -> 97.5, "1 234" -> 1234.0; None: not a number."""
    found = re.match(r"-?\d[\d ]*(\.\d+)?", text)
    if not found:
        return None
    unit = text[found.end():].strip().partition("/")[0]
    return float(found[0].replace(" ", "")) * UNITS.get(unit, 1)


def wordless(text):
    """The text without numbers and their units."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d .,]*( ?[kMGT]?B\b| ?%| ?m?s\b)?", "", text)).strip()


def page(text):
    text = text[text.index("<main>"):text.index("</main>")]
    plain = lambda piece: html.unescape(re.sub(r"<[^>]+>", "", piece)).replace("\xa0", " ").strip()  # noqa: E731
    words = [plain(found[1]) for found in re.finditer(r"<(?:dt|th|h2|summary)\b[^>]*>(.*?)</", text, re.S)]
    values = {found[1]: amount(plain(found[2])) for found in re.finditer(r'<dd id="(\w+)"[^>]*>(.*?)</dd>', text, re.S)}
    rounds = max(values.get("steps") or 0, 1)
    return {
        "words": sorted({wordless(one) for one in words} - {""}),
        "numbers": {
            "bytes sent a round": (values.get("bytes_sent") or 0) / rounds,
            "bytes received a round": (values.get("bytes_received") or 0) / rounds,
            "sent, % of the rows' bytes": values.get("edge_ratio") or 0,
        },
    }


def lines(svg):
    """The lines of a terminal's picture, words separated by spaces."""
    rows = {}
    for x, y, text in re.findall(r'<text x="([\d.]+)" y="(\d+)"[^>]*>(.*?)</text>', svg):
        rows.setdefault(int(y), []).append((float(x), html.unescape(text)))
    return [" ".join(text for _, text in sorted(rows[y])) for y in sorted(rows)]


def terminal(svg):
    shown = lines(svg)
    heading = next(line for line in shown if line.startswith("device "))
    exchanged = next(line for line in shown if line.startswith("exchanged "))
    sent, received, rate, rounds = re.fullmatch(
        r"exchanged (.+) sent, (.+) received \((.+)/s\), (.+) rounds", exchanged).groups()
    measured = next(line for line in shown if line.startswith("accuracy on "))
    return {
        "words": [wordless(shown[0]), heading, wordless(measured), wordless(exchanged)],
        "numbers": {
            "bytes sent a round": amount(sent) / amount(rounds),
            "bytes received a round": amount(received) / amount(rounds),
            "bytes a second": amount(rate),
        },
    }


def main():
    kinds = {"page": page, "terminal": terminal}
    if len(sys.argv) != 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    print(json.dumps(kinds[sys.argv[1]](pathlib.Path(sys.argv[2]).read_text()), indent=1))


if __name__ == "__main__":
    main()
