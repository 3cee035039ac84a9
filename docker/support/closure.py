"""The files that one program needs at run time, and how they are put into a folder."""
import fnmatch
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

UID = 10001  # of the user in the image
# Compiled into the program from headers: their licences want to be shown, too.
HEADER_PACKAGES = ("libboost1.74-dev", "libcli11-dev", "nlohmann-json3-dev")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
MOUNT_POINTS = ("dev", "etc/rivulet", "proc", "run/secrets", "sys", "tmp", "var/lib/rivulet")
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nrivulet:x:{UID}:{UID}:rivulet:/var/lib/rivulet:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nrivulet:x:{UID}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    # Container engines mount their own over these two; they must be there in a root that is read-only.
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/resolv.conf": "",
}


class Missing(Exception):
    """Something that the list needs is not on this machine."""


@dataclass
class Entry:
    target: str  # below the root, without a leading slash
    origin: str  # a person's words: from where it is
    kind: str  # program | library | licence | certificates | accounts | folder
    source: Path | None = None
    text: str | None = None
    link: str | None = None


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command[:2])} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def shared_objects(binary, outside=()):
    """Name by which each is asked for -> file; and the loader's path, as the program names it."""
    found, loader = {}, None
    for line in run("ldd", str(binary)).splitlines():
        name = line.split()[0]
        if any(fnmatch.fnmatch(name, pattern) for pattern in outside):
            continue
        if "not found" in line:
            raise Missing(f"{binary} needs a library that is not here: {line.strip()}")
        if match := re.match(r"\s*(\S+) => (/\S+) \(", line):
            found[match[1]] = Path(match[2]).resolve()
        elif match := re.match(r"\s*(/\S+) \(", line):
            loader = Path(match[1])
    if loader is None:
        raise Missing(f"{binary} is not a dynamic program")
    return found, loader


def packages_of(files):
    """file -> Debian package. dpkg may know a file below /lib or below /usr/lib: both are asked for."""
    names = {}
    for file in files:
        names[str(file)] = file
        if str(file).startswith("/usr/"):
            names[str(file)[len("/usr"):]] = file
    known = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True).stdout
    owners = {}
    for line in known.splitlines():
        packages, _, name = line.partition(": ")
        if name in names and not packages.startswith("diversion"):
            owners[names[name]] = packages.split(",")[0].split(":")[0]
    return owners


def version_of(package):
    return run("dpkg-query", "--show", "--showformat", "${Version}\n", package).splitlines()[0]


def wheel_root(file):
    """The folder into which wheels were unpacked and in which this file lies, or None."""
    for parent in file.parents:
        if next(parent.glob("*.dist-info"), None):
            return parent
    return None


def multiarch():
    return run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip() if shutil.which("dpkg-architecture") else \
        run("gcc", "-print-multiarch").strip()


def opened_by_name(patterns, beside):
    """Libraries that match, in the folders in which the others lie."""
    found = {}
    for pattern in patterns:
        matches = [file for folder in sorted({file.parent for file in beside}) for file in sorted(folder.glob(pattern))]
        if not matches:
            raise Missing(f"no library is called {pattern}")
        found.update({file.name: file.resolve() for file in matches})
    return found


def library_entries(objects, loader, prefix):
    folder = prefix.strip("/") if prefix else f"usr/lib/{multiarch()}"
    owners = packages_of([*objects.values(), loader.resolve()])
    entries, packages, wheels = [], set(), set()
    for name, file in sorted({**objects, loader.name: loader.resolve()}.items()):
        if file in owners:
            packages.add(owners[file])
            origin = f"Debian {owners[file]} {version_of(owners[file])}"
        elif root := wheel_root(file):
            wheels.add(root)
            origin = "LibTorch's wheel" if "torch" in file.relative_to(root).parts else "NVIDIA's wheel"
        else:
            raise Missing(f"{file} comes from no Debian package and no wheel: under which licence?")
        entries.append(Entry(f"{folder}/{name}", origin, "library", file))
    # The program asks for its loader by a path of its own, which Debian keeps as a link, too.
    place = "usr" + str(loader)
    if not prefix and place != f"{folder}/{loader.name}":
        entries.append(Entry(place, "made here", "accounts", link=f"/{folder}/{loader.name}"))
    return entries, packages, wheels


def licence_entries(packages, wheels):
    entries = []
    for package in sorted(packages | {"ca-certificates"}):
        source = Path(f"/usr/share/doc/{package}/copyright")
        if not source.exists():
            raise Missing(f"{source} is not there: apt was told to install no documentation")
        entries.append(Entry(f"usr/share/doc/{package}/copyright", f"Debian {package}", "licence", source.resolve()))
    for root in sorted(wheels):
        for info in sorted(root.glob("*.dist-info")):
            for source in sorted(p for p in info.rglob("*") if p.is_file() and "licenses" in p.parts):
                inside = source.relative_to(info / "licenses")
                name = info.name.removesuffix(".dist-info")
                entries.append(Entry(f"usr/share/doc/{name}/{inside}", f"wheel {name}", "licence", source))
    return entries


def entries_for(binary, also=(), outside=(), prefix=None):
    binary = binary.resolve()
    if not binary.is_file():
        raise Missing(f"{binary} is not there: scripts/build makes it")
    objects, loader = shared_objects(binary, outside)
    for file in opened_by_name(also, objects.values()).values():
        more, _ = shared_objects(file, outside)
        objects.update({file.name: file, **{name: path for name, path in more.items() if name not in objects}})
    libraries, packages, wheels = library_entries(objects, loader, prefix)
    installed = {p for p in HEADER_PACKAGES if Path(f"/usr/share/doc/{p}/copyright").exists()}
    if missing := set(HEADER_PACKAGES) - installed:
        raise Missing(f"packages that a build needs are not installed: {' '.join(sorted(missing))}")
    if not CERTIFICATES.exists():
        raise Missing(f"{CERTIFICATES} is not there: install ca-certificates")
    entries = [Entry("usr/bin/rivulet", "Rivulet", "program", binary), *libraries]
    entries += licence_entries(packages | installed, wheels)
    entries.append(Entry("usr/share/doc/rivulet/LICENSE", "Rivulet", "licence", Path(__file__).parents[2] / "LICENSE"))
    entries.append(Entry(str(CERTIFICATES)[1:], f"Debian ca-certificates {version_of('ca-certificates')}",
                         "certificates", CERTIFICATES))
    entries.append(Entry("usr/lib/ssl/cert.pem", "made here", "accounts", link=str(CERTIFICATES)))
    entries += [Entry(target, "made here", "accounts", text=text) for target, text in TEXTS.items()]
    entries += [Entry(target, "made here", "accounts", link=f"usr/{target}") for target in ("lib", "lib64")]
    entries += [Entry(target, "made here", "folder") for target in MOUNT_POINTS]
    return entries


def install(entries, root):
    """Copies; the program and libraries lose what only a debugger reads (names for stack traces stay)."""
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    for entry in sorted(entries, key=lambda e: e.link is not None):
        place = root / entry.target
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "folder":
            place.mkdir(exist_ok=True)
        elif entry.link is not None:
            place.symlink_to(entry.link)
        elif entry.text is not None:
            place.write_text(entry.text)
        elif entry.kind in ("program", "library"):
            run("strip", "--strip-unneeded", "-o", str(place), str(entry.source))
            place.chmod(0o755)
        else:
            shutil.copyfile(entry.source, place)
    (root / "tmp").chmod(0o1777)


def use_own_loader(root, prefix, search):
    """The program takes its loader and libraries from `prefix`, so that the base below may be of another system."""
    folder = "/" + prefix.strip("/")
    loader = next((root / folder[1:]).glob("ld-linux*"))
    program = root / "usr/bin/rivulet"
    run("patchelf", "--set-interpreter", f"{folder}/{loader.name}", str(program))
    run("patchelf", "--force-rpath", "--set-rpath", ":".join([folder, *search]), str(program))
