"""Subsets of MNIST's test images, for runs that evaluate often."""

import gzip
import pathlib
import random
import shutil
import tempfile

from processes import ROOT

DATA = ROOT / "examples" / "mnist" / "data"


def smaller(rows, store):
    """Returns a directory in `store` with the first `rows` test images."""
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


def shuffled(store):
    """Returns the data set with shuffled training labels, from which nothing can be learned."""
    folder = store / "shuffled"
    if folder.exists():
        return folder
    store.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=store))
    for file in DATA.iterdir():
        if "train-labels" not in file.name:
            shutil.copy(file, made)
            continue
        whole = gzip.decompress(file.read_bytes())
        labels = bytearray(whole[8:])
        random.Random(1).shuffle(labels)
        (made / file.name).write_bytes(gzip.compress(whole[:8] + bytes(labels), mtime=0))
    made.rename(folder)
    return folder
