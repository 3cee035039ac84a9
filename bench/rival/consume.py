#!/usr/bin/env python3
"""Measures the rival's consumer: microseconds of this process's CPU per row, after the first batch.

python consume.py --brokers HOST:PORT --topic t --rows 200000 --batch 64
"""

import argparse
import gc
import time

import torch
from rank import keep_freed_blocks
from rows import QUEUE_MIB, Batches, KafkaRows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    args = parser.parse_args()
    keep_freed_blocks()
    torch.set_num_threads(1)
    batches = Batches(torch, KafkaRows(args.brokers, args.topic, 0, QUEUE_MIB["mlp"]))
    gc.freeze()
    gc.disable()
    batches.next(args.batch)
    began, taken = time.process_time(), 0
    while taken + args.batch <= args.rows - Batches.BLOCK * args.batch:
        pixels, labels = batches.next(args.batch)
        if pixels.shape[0] != args.batch or labels.shape[0] != args.batch:
            raise SystemExit("unexpected batch size")
        taken += args.batch
    print(1e6 * (time.process_time() - began) / taken)


if __name__ == "__main__":
    main()
