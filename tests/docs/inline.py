"""Commands of ours that stand inside sentences and tables are not typed, but they are known, and so are their options."""
import re

CODE = re.compile(r"`(rivulet(?: [^`]*)?)`")


def commands_known(reference):
    """docs/reference/command-line.md: `run` -> what its --help says."""
    parts = re.split(r"^#+ rivulet ?(.*)$", reference, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def wrong_inline(text, known):
    wrong = []
    for code in CODE.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        words = code.split()[1:]
        named = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
        name = next((name for name in (" ".join(named), *named[:1]) if name in known), None)
        if name is None:
            wrong.append(f"there is no command {code}")
            continue
        wrong += [f"{code}: there is no {word}" for word in words
                  if word.startswith("--") and not re.search(rf"{re.escape(word)}(?![\w-])", known[name])]
    return wrong
