#!/usr/bin/env python3
"""One device of a group that changes its size, with what PyTorch has for that: a training loop behind a confluent-kafka consumer.

    torchrun ... elastic.py restart --checkpoint FILE ...     PyTorch's elastic agent restarts all workers at every change
    python elastic.py reconfigure --store HOST:PORT ...       ProcessGroup.reconfigure over Gloo: the processes stay
    python elastic.py store --store HOST:PORT                 the key-value store of both, which must not die

Reads its own partition, --batch rows per step. --progress FILE receives two doubles: the step, and the devices of the group.

restart: rank 0 saves parameters, momentum and the offsets of all partitions to one FILE every --every seconds; every
worker starts from it, so the file must be on storage that all devices share.
reconfigure: PyTorch replaces only the connections. This file finds out who is there, agrees on it through the store, transfers
the state from the newest member, and trains the interrupted batch again unless the newest state contains it.
"""

import argparse
import contextlib
import datetime
import json
import mmap
import os
import pathlib
import signal
import struct
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("way", choices=("restart", "reconfigure", "store"))
    add("--store", default="127.0.0.1:29500", metavar="HOST:PORT")
    add("--checkpoint", metavar="FILE")
    add("--every", type=float, default=1.0, metavar="S")
    add("--least", type=int, default=2, help="devices that a group needs (reconfigure)")
    add("--deadline", type=float, default=2.0, metavar="S", help="of connections and sums")
    add("--settle", type=float, default=0.3, metavar="S", help="wait for further devices (reconfigure)")
    add("--brokers", default="localhost:9092")
    add("--topic", default="rows")
    add("--partition", type=int, default=0)
    add("--model", choices=("lenet5", "mlp"), default="lenet5")
    add("--batch", type=int, default=64)
    add("--progress", metavar="FILE")
    return parser.parse_args()


class Progress:
    def __init__(self, path):
        pathlib.Path(path).touch()
        with open(path, "r+b") as file:
            file.truncate(16)
            self._map = mmap.mmap(file.fileno(), 16)

    def at(self, step, world):
        struct.pack_into("2d", self._map, 0, step, world)


class Model:
    """Parameters and momentum as flat tensors, so that one sum and one broadcast carry them."""

    def __init__(self, torch, name):
        from networks import make_network

        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.torch, self.network, self.step = torch, make_network(torch, name), 0
        self.flat = torch.cat([p.detach().reshape(-1) for p in self.network.parameters()])
        self.momentum = torch.zeros_like(self.flat)

    def gradient(self, pixels, labels):
        self.network.zero_grad()
        self.torch.nn.functional.cross_entropy(self.network(pixels), labels).backward()
        return self.torch.cat([p.grad.reshape(-1) for p in self.network.parameters()])

    def apply(self, gradient):
        self.momentum.mul_(0.9).add_(gradient)
        self.flat.sub_(self.momentum, alpha=0.05)
        self.step += 1
        self.publish()

    def publish(self):
        at = 0
        with self.torch.no_grad():
            for p in self.network.parameters():
                p.copy_(self.flat[at : at + p.numel()].view_as(p))
                at += p.numel()


def rows_from(args, torch, offset):
    from rows import Batches, KafkaRows

    return Batches(torch, KafkaRows(args.brokers, args.topic, args.partition, 16, offset))


# --- restart: PyTorch's elastic agent


class Checkpoint:
    """One file of all devices."""

    def __init__(self, torch, path, every):
        self._torch, self._path, self._every, self._next = torch, pathlib.Path(path), every, 0.0

    def load(self, model):
        """Returns the offsets by partition."""
        if not self._path.exists():
            return {}
        kept = self._torch.load(self._path)
        model.flat, model.momentum, model.step = kept["flat"], kept["momentum"], kept["step"]
        model.publish()
        return kept["offsets"]

    def due(self):
        return time.monotonic() >= self._next

    def save(self, model, offsets):
        self._next = time.monotonic() + self._every
        unfinished = self._path.with_suffix(".unfinished")
        kept = {"flat": model.flat, "momentum": model.momentum, "step": model.step, "offsets": offsets}
        self._torch.save(kept, unfinished)
        unfinished.rename(self._path)


def restarted(args):
    import torch
    import torch.distributed as dist

    progress = Progress(args.progress)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=args.deadline))
    rank, world = dist.get_rank(), dist.get_world_size()
    model, checkpoint = Model(torch, args.model), Checkpoint(torch, args.checkpoint, args.every)
    offsets = checkpoint.load(model)
    offset = offsets.get(args.partition, 0)
    batches = rows_from(args, torch, offset)
    progress.at(model.step, world)
    dist.all_reduce(torch.zeros(1))  # none saves before all have loaded
    while True:
        gradient = model.gradient(*batches.next(args.batch))
        due = torch.tensor([float(rank == 0 and checkpoint.due())])
        bucket = torch.cat([gradient, due])
        dist.all_reduce(bucket)
        model.apply(bucket[:-1] / world)
        offset += args.batch
        progress.at(model.step, world)
        if bucket[-1] > 0:
            own = [None] * world
            dist.all_gather_object(own, (args.partition, offset))
            offsets = {**offsets, **dict(own)}
            if rank == 0:
                checkpoint.save(model, offsets)


# --- reconfigure: the processes stay


class Members:
    """Agreement on the members of the next group, through the store: who registers within `settle` of the first is in."""

    def __init__(self, store, own, args):
        self._store, self._own, self._args, self.generation = store, own, args, 0

    def next(self, handle):
        """Returns the handles of the members, and the group's number."""
        self.generation = max(self.generation + 1, self._store.add("generation", 0))
        while True:
            number = self.generation
            self._store.set(f"{number}/handle/{self._own}", handle)
            self._store.append(f"{number}/ids", f"{self._own} ")
            if self._store.add(f"{number}/first", 1) == 1:
                self._decide(number)
            with contextlib.suppress(Exception):  # the first one may have died
                self._store.wait([f"{number}/view"], datetime.timedelta(seconds=self._args.deadline + 30))
                ids = json.loads(self._store.get(f"{number}/view"))
                if self._own in ids:
                    return [self._store.get(f"{number}/handle/{one}").decode() for one in ids], number
            self.generation += 1

    def _decide(self, number):
        while True:
            time.sleep(self._args.settle)
            ids = sorted(set(self._store.get(f"{number}/ids").decode().split()))
            if len(ids) >= self._args.least:
                break
        self._store.add("generation", number - self._store.add("generation", 0))
        self._store.set(f"{number}/view", json.dumps(ids))

    def ask(self):
        """A newcomer asks the members to stop behind their step."""
        self._store.add("asked", 1)

    def asked(self):
        return self._store.add("asked", 0)


class Group:
    def __init__(self, torch, store, args):
        import torch.distributed as dist

        self._dist, self._torch, self._args = dist, torch, args
        self._time = datetime.timedelta(seconds=args.deadline)
        own = args.partition  # a rank that only makes the handle unique
        self._pg = dist.ProcessGroupGloo(store, own, own + 1, self._time, True)
        self.world = 0

    def form(self, members, model):
        """Connects to the members, and adopts the newest state. Returns the step of this device before."""
        handles, number = members.next(self._pg.get_reconfigure_handle())
        from torch._C._distributed_c10d import ReconfigureOptions

        wanted = ReconfigureOptions()
        wanted.uuid, wanted.handles, wanted.timeout = number, handles, self._time
        self._pg.reconfigure(wanted).wait()
        self.world = len(handles)
        steps = [self._torch.zeros(1, dtype=self._torch.int64) for _ in handles]
        self._pg.allgather([steps], [self._torch.tensor([model.step])]).wait()
        steps = [int(step) for step in steps]
        options = self._dist.BroadcastOptions()
        options.rootRank, options.rootTensor = steps.index(max(steps)), 0
        for tensor in (model.flat, model.momentum):
            self._pg.broadcast([tensor], options).wait()
        before, model.step = model.step, max(steps)
        model.publish()
        return before

    def sum(self, tensor):
        self._pg.allreduce([tensor]).wait()


def reconfigured(args):
    import torch
    import torch.distributed as dist

    host, port = args.store.split(":")
    progress = Progress(args.progress)
    leaving = []
    signal.signal(signal.SIGTERM, lambda *_: leaving.append(True))
    store = dist.TCPStore(host, int(port), is_master=False, wait_for_workers=False)
    model, members = Model(torch, args.model), Members(store, str(args.partition), args)
    group, batches = Group(torch, store, args), rows_from(args, torch, 0)
    members.ask()
    heard, batch = None, None  # `heard`: the requests that this group has answered
    while True:
        if heard is None:
            heard = members.asked()
            try:
                before = group.form(members, model)
            except RuntimeError as fault:
                print(f"forming: {fault}", file=sys.stderr, flush=True)
                heard = None
                continue
            if before and model.step > before:
                batch = None  # the sum that this device missed contains it
            progress.at(model.step, group.world)
        batch = batch or batches.next(args.batch)
        stop = float(bool(leaving) or members.asked() > heard)
        bucket = torch.cat([model.gradient(*batch), torch.tensor([stop])])
        try:
            group.sum(bucket)
        except RuntimeError as fault:
            print(f"step: {fault}", file=sys.stderr, flush=True)
            heard = None
            continue
        model.apply(bucket[:-1] / group.world)
        batch = None
        progress.at(model.step, group.world)
        if bucket[-1] > 0:
            if leaving:
                return
            heard = None


def keep_store(args):
    import torch.distributed as dist

    host, port = args.store.split(":")
    store = dist.TCPStore(host, int(port), is_master=True, wait_for_workers=False)
    print(store.port, flush=True)
    signal.pause()


if __name__ == "__main__":
    given = arguments()
    {"restart": restarted, "reconfigure": reconfigured, "store": keep_store}[given.way](given)
