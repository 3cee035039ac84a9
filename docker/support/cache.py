"""Where scripts/setup keeps what it brought (scripts/common.sh says the same)."""
import os
from pathlib import Path


def folder():
    named = os.environ.get("RIVULET_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "rivulet"


def use_tools():
    """Programs that are no packages here, as Prometheus, are found like all others; those of sbin, too."""
    os.environ["PATH"] = f"{folder()}/tools/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
