#!/usr/bin/env python3
"""Loads an exported model with the safetensors library and computes its outputs with numpy alone: nothing of
Rivulet and nothing of LibTorch is in it.

model_outputs.py MODEL FILE ROWS SHAPE    ROWS: little-endian float32, SHAPE: of one row, as 1,28,28
Writes one JSON object: {"metadata": ..., "tensors": {name: [dtype, shape]}, "outputs": [[...], ...]}"""

import json
import sys

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from safetensors import safe_open
from safetensors.numpy import load_file


def linear(tensors, name, rows):
    return rows @ tensors[name + "weight"].T + tensors[name + "bias"]


def convolution(tensors, name, images, padding):
    padded = numpy.pad(images, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    weight = tensors[name + ".weight"]
    windows = sliding_window_view(padded, weight.shape[2:], axis=(2, 3))
    return numpy.einsum("nchwij,ocij->nohw", windows, weight) + tensors[name + ".bias"][:, None, None]


def pool(images):
    n, c, h, w = images.shape
    return images.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def normalise(tensors, name, images):
    def channels(what):
        return tensors[f"{name}.{what}"][:, None, None]

    scale = channels("weight") / numpy.sqrt(channels("running_var") + 1e-5)
    return (images - channels("running_mean")) * scale + channels("bias")


def relu(numbers):
    return numpy.maximum(numbers, 0)


def flat(rows):
    return rows.reshape(len(rows), -1)


def lenet5(tensors, rows):
    rows = relu(pool(convolution(tensors, "conv1", rows, 2)))
    rows = relu(pool(convolution(tensors, "conv2", rows, 0)))
    rows = relu(linear(tensors, "full1.", flat(rows)))
    rows = relu(linear(tensors, "full2.", rows))
    return linear(tensors, "output.", rows)


def cnn(tensors, rows):
    for i in ("1", "2", "3"):
        rows = relu(pool(normalise(tensors, "norm" + i, convolution(tensors, "conv" + i, rows, 1))))
    return linear(tensors, "output.", relu(linear(tensors, "full.", flat(rows))))


def mlp(tensors, rows):
    features = rows = flat(rows)
    for i in range(sum(name.startswith("hidden") for name in tensors) // 2):
        rows = relu(linear(tensors, f"hidden{i}.", rows))
    outputs = linear(tensors, "output.", rows)
    return outputs + features @ tensors["skip.weight"].T if "skip.weight" in tensors else outputs


def two_layers(tensors, rows):
    """tests/support/models/*.pt"""
    return linear(tensors, "last.", relu(linear(tensors, "first.", flat(rows))))


models = {
    "linear": lambda tensors, rows: linear(tensors, "", flat(rows)),
    "mlp": mlp,
    "lenet5": lenet5,
    "cnn": cnn,
    "torchscript": two_layers,
}


def main(model, file, rows_file, shape):
    tensors = load_file(file)
    with safe_open(file, framework="numpy") as opened:
        metadata = opened.metadata()
    rows = numpy.fromfile(rows_file, dtype="<f4").reshape([-1] + [int(n) for n in shape.split(",")])
    number = next(tensor.dtype for tensor in tensors.values() if tensor.dtype.kind == "f")  # counts of batches are integers
    outputs = models[model](tensors, rows.astype(number))
    json.dump(
        {
            "metadata": metadata,
            "tensors": {name: [str(t.dtype), list(t.shape)] for name, t in tensors.items()},
            "outputs": outputs.tolist(),
        },
        sys.stdout,
    )


main(*sys.argv[1:])
