"""The images that the tests run: ours as docker/Dockerfile says, and those that docker/compose.yaml takes from others."""
import re
import shutil
from pathlib import Path

import engine
from engine import FOLDER, ROOT

DOCKERFILE = ROOT / "docker/Dockerfile"
OURS = "docker.io/library/rivulet:cpu"  # the name that docker/compose.yaml means
QUICK = "localhost/rivulet-test:quick"
KAFKA, PROMETHEUS = "localhost/rivulet-test-kafka", "localhost/rivulet-test-prometheus"


def build_ours():
    """From sources, on a bare Debian. LibTorch and what the compiler did before are taken from this machine's caches."""
    engine.base()
    inside = "/root/.cache"
    libtorch = next(engine.processes.cache().glob("libtorch-*[0-9]"))
    ccache = Path(engine.run("ccache", "--get-config", "cache_dir"))
    engine.build(OURS, DOCKERFILE, ROOT, "--target", "cpu", "--ignorefile", f"{DOCKERFILE}.dockerignore",
                 "--volume", f"{libtorch}:{inside}/rivulet/{libtorch.name}:ro", "--volume", f"{ccache}:{inside}/ccache", seconds=3000)


def build_quick(binary):
    """The Dockerfile's own last stage, over the files of a program that is already built."""
    files = FOLDER / "quick"
    shutil.rmtree(files, ignore_errors=True)
    engine.run(ROOT / "docker/runtime-files", binary, "--install", files / "image")
    (files / "image/var/lib/rivulet").rename(files / "data")
    stage = re.search(r"^FROM scratch AS cpu\n.*?(?=^FROM )", DOCKERFILE.read_text(), re.M | re.S)[0]
    (files / "Dockerfile").write_text(stage)
    before = engine.podman("images", "--quiet", "--no-trunc", QUICK)
    engine.build(QUICK, files / "Dockerfile", files, "--layers=false", "--build-context", f"build-cpu={files}")
    if before and before != engine.podman("images", "--quiet", "--no-trunc", QUICK):
        engine.podman("rmi", before)
    shutil.rmtree(files)


def build_others():
    engine.base()
    for tag, target in ((KAFKA, "kafka"), (PROMETHEUS, "prometheus")):
        engine.build(tag, ROOT / "tests/docker/others/Containerfile", ROOT / "tests/docker/others", "--target", target,
                     "--build-context", f"jars={next(engine.processes.cache().glob('kafka-*'))}",
                     "--build-context", f"programs={Path(shutil.which('prometheus')).parent}", seconds=600)
