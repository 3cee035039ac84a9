"""A compose file with its variables filled in."""
import os
import re
from pathlib import Path

import yaml


class Unset(Exception):
    """A variable that the file demands is not set."""


def interpolate(text, environment):
    def value(match):
        if match[0] == "$$":
            return "$"
        name, sign, rest = match[1] or match[4], match[2], match[3]
        given = environment.get(name, "")
        if given or not sign:
            return given
        if sign == ":?":
            raise Unset(f"{name} is not set: {rest}")
        return rest
    return re.sub(r"\$\$|\$\{(\w+)(?:(:-|:\?)([^}]*))?\}|\$(\w+)", value, text)


def filled(node, environment):
    if isinstance(node, str):
        return interpolate(node, environment)
    if isinstance(node, list):
        return [filled(one, environment) for one in node]
    if isinstance(node, dict):
        return {key: filled(one, environment) for key, one in node.items()}
    return node


def load(path, environment=None):
    document = yaml.safe_load(Path(path).read_text())
    return filled(document, os.environ if environment is None else environment)


def mounts(service, document, path):
    """(source, target, read only) of each; the source is a Path, or the name of a volume."""
    found = []
    for volume in service.get("volumes", []):
        source, target, *mode = volume.split(":")
        if source not in document.get("volumes", {}):
            source = (Path(path).parent / source).resolve()
        found.append((source, target, mode == ["ro"]))
    for name in service.get("secrets", []):
        file = (Path(path).parent / document["secrets"][name]["file"]).resolve()
        found.append((file, f"/run/secrets/{name}", True))
    return found


def in_order(services):
    """Names, each behind all that it depends on."""
    done = []

    def visit(name, above):
        if name in above:
            raise ValueError(f"services wait for each other: {' -> '.join([*above, name])}")
        for needed in services[name].get("depends_on", {}):
            visit(needed, [*above, name])
        if name not in done:
            done.append(name)
    for name in services:
        visit(name, [])
    return done


def seconds(text, default):
    match = re.fullmatch(r"(\d+)(ms|s|m)?", str(text)) if text is not None else None
    return int(match[1]) * {"ms": 0.001, "s": 1, "m": 60, None: 1}[match[2]] if match else default


def size(text):
    number, unit = re.fullmatch(r"(\d+)([kmg]?)b?", str(text).lower()).groups()
    return int(number) * 1024 ** " kmg".index(unit or " ")
