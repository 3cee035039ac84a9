"""The first of MNIST's test images, for runs that look at them often."""

import gzip
import pathlib
import tempfile

from processes import ROOT

DATA = ROOT / "examples" / "mnist" / "data"


def smaller(rows, store):
    """A folder below `store` with so many of them."""
    folder = store / f"held-out-{rows}"
    if folder.exists():
        return folder
    store.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=store))
    for name, head, size in [("t10k-images-idx3-ubyte.gz", 16, 784), ("t10k-labels-idx1-ubyte.gz", 8, 1)]:
        whole = gzip.decompress((DATA / name).read_bytes())
        part = whole[:4] + rows.to_bytes(4, "big") + whole[8 : head + rows * size]
        (made / name).write_bytes(gzip.compress(part, mtime=0))
    made.rename(folder)
    return folder
