"""Checks that our commands inside sentences and tables exist, with their options. They are not run."""
import re

CODE = re.compile(r"`(rivulet(?: [^`]*)?)`")
OTHER = re.compile(r"`((?:cmake|docker|pip|scripts|docker/|dashboards/|bench/|-D)[^`]*)`")


def commands_known(reference):
    """docs/reference/command-line.md: `run` -> output of its --help."""
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


def wrong_files(text, root):
    """In other commands in sentences: checks the files of the tree and the options of the build."""
    said = "".join(path.read_text() for path in [root / "CMakeLists.txt", *root.glob("cmake/*.cmake")])
    wrong = []
    for code in OTHER.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        for word in code.split():
            option = re.match(r"-D(RIVULET_\w+)=", word)
            path = re.match(r"(?:docker|scripts|dashboards|bench|examples)/[\w./-]+$", word)
            if option and option[1] not in said:
                wrong.append(f"{code}: the build has no {option[1]}")
            if path and not (root / path[0]).exists():
                wrong.append(f"{code}: there is no {path[0]}")
    return wrong
