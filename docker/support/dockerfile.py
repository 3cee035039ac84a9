"""What docker/Dockerfile says about a target: read, so that nothing else says it twice."""
import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

DOCKERFILE = Path(__file__).resolve().parents[1] / "Dockerfile"


@dataclass
class Image:
    base: str = ""
    user: str = ""
    workdir: str = "/"
    environment: dict = field(default_factory=dict)
    volumes: list = field(default_factory=list)
    ports: list = field(default_factory=list)
    entrypoint: list = field(default_factory=list)
    command: list = field(default_factory=list)
    stop_signal: str = "SIGTERM"
    health: list = field(default_factory=list)

    def same(self, other):
        """Alike but for what they are built on."""
        def own(image):
            shared = {k: v for k, v in image.environment.items() if not k.startswith("NVIDIA_")}
            return {**vars(image), "base": "", "environment": shared}
        return own(self) == own(other)


def instructions(text):
    """(name, rest) of each; comments left out, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    for line in filter(str.strip, joined.splitlines()):
        name, _, rest = line.strip().partition(" ")
        yield name.upper(), rest.strip()


def apply(image, name, rest):
    if name == "USER":
        image.user = rest
    elif name == "WORKDIR":
        image.workdir = rest
    elif name == "ENV":
        image.environment.update(pair.split("=", 1) for pair in shlex.split(rest))
    elif name == "VOLUME":
        image.volumes += rest.split()
    elif name == "EXPOSE":
        image.ports += [int(port) for port in rest.split()]
    elif name == "ENTRYPOINT":
        image.entrypoint = json.loads(rest)
    elif name == "CMD":
        image.command = json.loads(rest)
    elif name == "STOPSIGNAL":
        image.stop_signal = rest
    elif name == "HEALTHCHECK":
        image.health = json.loads(rest[rest.index("CMD ") + 4:])


def images(text=None):
    """Target -> Image, of all stages."""
    stages, current = {}, None
    for name, rest in instructions(text if text is not None else DOCKERFILE.read_text()):
        if name == "FROM":
            base, _, stage = re.sub(r"--\S+\s+", "", rest).partition(" AS ")
            current = stages[stage.strip()] = Image(base=base.strip())
        elif current is not None:
            apply(current, name, rest)
    return stages
