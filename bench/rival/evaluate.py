#!/usr/bin/env python3
"""Evaluates the rival's snapshots on MNIST's held-out rows. Prints a JSON list of [seconds since 1970, accuracy].

python evaluate.py FOLDER MODEL MNIST [SECONDS]      skips snapshots less than SECONDS after the previous one, except the last
"""

import gzip
import json
import pathlib
import sys

import numpy
import torch
from networks import make_network
from rows import PIXEL_DEVIATION, PIXEL_MEAN


def idx_file(path, header_bytes):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read()[header_bytes:], numpy.uint8)


def held_out_rows(folder):
    pixels = torch.from_numpy(idx_file(folder / "t10k-images-idx3-ubyte.gz", 16).astype(numpy.float32)).view(-1, 784)
    labels = torch.from_numpy(idx_file(folder / "t10k-labels-idx1-ubyte.gz", 8).astype(numpy.int64))
    return (pixels / 255 - PIXEL_MEAN) / PIXEL_DEVIATION, labels


def spread_out(files, apart):
    kept = []
    for file in files:
        if not kept or file == files[-1] or float(file.stem) >= float(kept[-1].stem) + apart:
            kept.append(file)
    return kept


def main():
    snapshots, model, mnist = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    apart = float(sys.argv[4]) if len(sys.argv) > 4 else 0
    torch.set_num_threads(1)
    pixels, labels = held_out_rows(mnist)
    network = make_network(torch, model)
    scores = []
    for file in spread_out(sorted(snapshots.glob("*.f32"), key=lambda file: float(file.stem)), apart):
        flat = torch.from_numpy(numpy.fromfile(file, numpy.float32))
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(flat, network.parameters())
            correct = sum(
                (network(p).argmax(1) == y).sum().item()
                for p, y in zip(pixels.split(500), labels.split(500), strict=True)
            )
        scores.append([float(file.stem), correct / len(labels)])
    json.dump(scores, sys.stdout)


if __name__ == "__main__":
    main()
