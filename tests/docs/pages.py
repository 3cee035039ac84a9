"""Commands and files in a page of the documentation."""
import re
from dataclasses import dataclass, field

FENCE = re.compile(r"^( *)```(\w*)\s*$")
ENDS = re.compile(r"ends with (\d+)")
FILE = re.compile(r"#\s*(\S+\.toml)\b")


@dataclass
class Block:
    language: str
    line: int
    lines: list = field(default_factory=list)

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def file(self):
        """The name in the first line of a complete file: `# device.toml`; None for a fragment."""
        found = FILE.match(self.lines[0]) if self.language == "toml" and self.lines else None
        return found[1] if found else None


def blocks(text):
    """All fenced blocks of a page, in order."""
    found, open_ = [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if open_ and fence and not fence[2]:
            found.append(open_)
            open_ = None
        elif open_:
            open_.lines.append(line[indent:])
        elif fence:
            open_, indent = Block(fence[2], number), len(fence[1])
    if open_:
        raise ValueError(f"line {open_.line}: unterminated block")
    return found


def unseen(text):
    """Lines of indented instead of fenced blocks: these may be commands or drawings."""
    outside, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside and line.startswith("    "):
            outside.append(number)
    return outside


def without_comment(line):
    """`command   # what it does`: only a # that begins a word, outside of quotes, begins a comment."""
    quote = None
    for at, letter in enumerate(line):
        if quote:
            quote = None if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at]
    return line


@dataclass(frozen=True)
class Command:
    text: str
    code: int = 0  # expected exit code


def commands(block):
    """One command per line of a shell block; a backslash at the end continues it. A comment may contain `ends with 78`."""
    found, begun = [], ""
    for line in block.lines:
        code = without_comment(line).rstrip()
        begun += code
        if begun.endswith("\\"):
            begun = begun[:-1].rstrip() + " "
            continue
        says = ENDS.search(line[len(code):])
        found.append(Command(re.sub(r"\s{2,}", " ", begun).strip(), int(says[1]) if says else 0))
        begun = ""
    return [command for command in found if command.text]
