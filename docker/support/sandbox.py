"""What bubblewrap and the kernel's groups do here in place of a container runtime."""
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

from support.closure import UID

GROUPS = Path("/sys/fs/cgroup")


class NoSandbox(Exception):
    """A tool is missing, or this user may not."""


class MemoryLimit:
    """A group of the kernel's own (v2, else v1); where neither can be made, a limit on the process's data alone."""

    def __init__(self, limit):
        self.limit, self.group = limit, None
        name = f"rivulet-{os.getpid()}"
        v2 = GROUPS / name
        v1 = GROUPS / "memory" / name
        if "memory" in read(GROUPS / "cgroup.subtree_control").split() and self.make(v2, {"memory.max": limit, "memory.swap.max": 0}):
            self.kind, self.peak_file = "cgroup v2", v2 / "memory.peak"
        elif (GROUPS / "memory").is_dir() and self.make(v1, {"memory.limit_in_bytes": limit}):
            self.kind, self.peak_file = "cgroup v1", v1 / "memory.max_usage_in_bytes"
        else:
            self.kind, self.peak_file = "RLIMIT_DATA, no cgroup here", None

    def make(self, group, values):
        try:
            group.mkdir()
        except OSError:
            return False
        for name, value in values.items():
            try:
                (group / name).write_text(str(value))
            except OSError:
                if name != "memory.swap.max":  # a kernel without swap has no such file
                    group.rmdir()
                    return False
        self.group = group
        return True

    def enter(self):
        """In the child, while it is still the caller's user."""
        if self.group is not None:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        else:
            resource.setrlimit(resource.RLIMIT_DATA, (self.limit, self.limit))

    def peak(self):
        text = read(self.peak_file) if self.peak_file else ""
        return int(text) if text.strip() else None

    def close(self):
        if self.group is not None:
            self.group.rmdir()


def read(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def bubblewrap(root, mounts, environment, workdir, info):
    """The command up to the program: a root that cannot be written, /tmp of its own, no rights, pid 1, the host's network."""
    program = shutil.which("bwrap")
    if program is None:
        raise NoSandbox("there is no bwrap: install bubblewrap (scripts/setup --for tests)")
    command = [program, "--unshare-all", "--share-net", "--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
               "--uid", str(UID), "--gid", str(UID), "--info-fd", str(info), "--clearenv", "--hostname", "rivulet",
               "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys", "--perms", "1777",
               "--tmpfs", "/tmp",
               "--ro-bind", "/etc/hosts", "/etc/hosts", "--ro-bind", os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"]
    places = [target for _, target, _ in mounts]
    for parent in ("/run/secrets", "/etc/rivulet"):  # so that files can be mounted there: the root itself has only the folder
        if any(place.startswith(parent + "/") for place in places):
            command += ["--tmpfs", parent]
    for source, target, read_only in mounts:
        command += ["--ro-bind" if read_only else "--bind", str(source), target]
    if any(place.startswith(("/run/secrets/", "/etc/rivulet/")) for place in places):
        command += [word for parent in ("/run/secrets", "/etc/rivulet") if any(p.startswith(parent + "/") for p in places)
                    for word in ("--remount-ro", parent)]
    for name, value in sorted(environment.items()):
        command += ["--setenv", name, value]
    return [*command, "--chdir", workdir, "--"]


def start(command, limit):
    """Starts it as the image's user, if the caller is root; a caller who is not stays who they are outside."""
    reader, writer = os.pipe()
    as_root = os.geteuid() == 0

    def become():
        limit.enter()
        if as_root:
            os.setgroups([])
            os.setgid(UID)
            os.setuid(UID)
    process = subprocess.Popen([str(writer) if part == "INFO" else part for part in command], pass_fds=[writer],
                               preexec_fn=become, process_group=0)
    os.close(writer)
    return process, reader


def pid_inside(reader):
    """The program's process id, as the host counts; None if bubblewrap never came so far."""
    with os.fdopen(reader) as info:
        text = info.read()
    return json.loads(text)["child-pid"] if text.strip() else None
