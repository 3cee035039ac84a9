"""podman and buildah on a storage of their own, in the cache: no image, container, network or setting of this machine is touched."""
import fcntl
import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import processes  # noqa: E402

FOLDER = processes.cache() / "containers"
DEBIAN = "localhost/debian:bookworm"
PREFIX = "rivulet-test-"  # of all containers, volumes and networks; one run at a time has the storage
CONTAINERS = """[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
image_copy_tmp_dir = "storage"
tmp_dir = "{run}/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
STORAGE = """[storage]
driver = "{driver}"
graphroot = "{folder}/storage"
runroot = "{run}/storage"
"""


SLACK = 6  # deadlines are written for a quiet machine, as in tests/support/wait.h: they end what hangs


class Failed(Exception):
    """A sentence for readers of the test's output."""


def run(*command, code=0, seconds=120, **more):
    """What it said, if it ends with `code`."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SLACK * seconds, **more)
    if code is not None and done.returncode != code:
        raise Failed(f"{' '.join(words[:6])} ... ended with {done.returncode}, not {code}: {done.stdout[-3000:]}")
    return done.stdout.strip()


def podman(*words, **more):
    return run("podman", *words, **more)


def at_most(limit, kind):
    """A process that is not privileged cannot raise its own limit, and what starts containers may be such a one."""
    hard = resource.getrlimit(kind)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def overlays():
    """Whether the kernel can lay folders of this file system over each other; copies of whole layers take their place."""
    place = FOLDER / "probe"
    for name in ("lower", "upper", "work", "merged"):
        (place / name).mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
    mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, place / "merged"], capture_output=True)
    if mounted.returncode == 0:
        subprocess.run(["umount", place / "merged"], check=True)
    return mounted.returncode == 0


def start():
    """Takes the storage, waiting for another run to end, and makes it ready. Returns the lock, which the caller holds."""
    if os.geteuid() != 0:
        raise Failed("containers with limits and networks of their own need root here: run this test as root")
    FOLDER.mkdir(parents=True, exist_ok=True)
    lock = open(FOLDER / ".lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    run_folder = f"/run/rivulet-{hashlib.sha256(str(FOLDER).encode()).hexdigest()[:8]}"  # short: paths of sockets are
    if not (FOLDER / "storage.conf").exists():
        (FOLDER / "storage.conf").write_text(STORAGE.format(driver="overlay" if overlays() else "vfs", folder=FOLDER, run=run_folder))
    (FOLDER / "containers.conf").write_text(CONTAINERS.format(
        files=at_most(4096, resource.RLIMIT_NOFILE), processes=at_most(4096, resource.RLIMIT_NPROC), folder=FOLDER, run=run_folder))
    os.environ["CONTAINERS_CONF"] = str(FOLDER / "containers.conf")
    os.environ["CONTAINERS_STORAGE_CONF"] = str(FOLDER / "storage.conf")
    clean()
    return lock


def clean():
    """Everything that a run leaves, or one before it that was killed, but images."""
    podman("rm", "--all", "--force", "--time", "0", "--volumes", seconds=300)
    run("buildah", "rm", "--all", seconds=300)
    podman("volume", "prune", "--force")
    podman("network", "prune", "--force")


def base():
    """Debian as Docker Hub has it, from Debian itself."""
    if subprocess.run(["podman", "image", "exists", DEBIAN]).returncode == 0:
        return
    archive = FOLDER / "debian.tar"
    run("mmdebstrap", "--quiet", "--variant=minbase", "bookworm", archive, seconds=900)
    podman("import", "--quiet", archive, DEBIAN)
    archive.unlink()


def build(tag, file, context, *words, seconds=300):
    """In Docker's format: the one of OCI has no health checks."""
    run("buildah", "bud", "--isolation=chroot", "--network=host", "--layers", "--quiet", "--format=docker",
        "--build-arg", f"DEBIAN={DEBIAN}", "--tag", tag, "--file", file, *words, context, seconds=seconds)


def forget_old_layers():
    """Layers that no image needs are there to build faster: for two days."""
    podman("image", "prune", "--force", "--filter", "until=48h")
