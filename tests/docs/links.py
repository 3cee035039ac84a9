"""Checks that links between pages have a target, and that pictures are small."""
import re

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PICTURE_BYTES = 150_000
README_LINES = 150


def anchors(text):
    """Anchors of headings: lower case, words joined by -."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def wrong_links(page, text):
    """page: the file of the text."""
    wrong = []
    for link in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (page.parent / target) if target else page
        if not file.exists():
            wrong.append(f"there is no {link}")
        elif anchor and anchor not in anchors(file.read_text()):
            wrong.append(f"there is no such part: {link}")
        elif file.suffix in (".png", ".svg") and file.stat().st_size > PICTURE_BYTES:
            wrong.append(f"{link} has {file.stat().st_size} bytes, more than {PICTURE_BYTES}")
    return [f"{page.name}: {what}" for what in wrong]


def wrong_tree(root):
    """All pages of the repository, and the length of the README."""
    files = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md")),
             *sorted((root / "examples").glob("*/README.md")), root / "dashboards/README.md"]
    wrong = [what for file in files for what in wrong_links(file, file.read_text())]
    lines = len((root / "README.md").read_text().splitlines())
    if lines > README_LINES:
        wrong.append(f"README.md has {lines} lines: what is more than {README_LINES} belongs into docs/")
    return wrong
