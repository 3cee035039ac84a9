#!/usr/bin/env python3
"""One rank of the most likely alternative: PyTorch DDP on Gloo behind a confluent-kafka consumer.

Written to win: the LibTorch that Rivulet links, one thread, rows in blocks with one join and one view, a client
queue that never runs empty, one flat bucket with the gradients as views, a static graph, the fused
optimizer, channels_last where it is faster, an allocator that keeps its blocks, no garbage collection.
It has no checkpoints, ledger, metrics or recovery from failures.

    python rank.py --rank 0 --world 2 --store 127.0.0.1:29500 --brokers HOST:PORT --topic t --partition 0

Three ways to make a batch:
    --batch N      conventional: every rank waits for N rows
    --tick S       as Rivulet: the rows received in S seconds, weighted by their number
    --no-kafka     N rows from memory: the training loop alone; with --mnist the rank's share of MNIST
--local-steps H is post-local SGD with PyTorch's averager: H local steps, then the mean of the parameters.
Runs until it is killed, or for --rows N. --progress FILE receives three doubles: age of the process at its first step
(s), steps, rows.
"""

import argparse
import ctypes
import datetime
import gc
import mmap
import os
import struct
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", category=FutureWarning)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rank", type=int, default=0)
    add("--world", type=int, default=1)
    add("--store", default="127.0.0.1:29500", metavar="HOST:PORT", help="address at which rank 0 listens")
    add("--interface", default="lo", help="network interface of Gloo")
    add("--brokers", default="localhost:9092")
    add("--topic", default="rows", help="topics, separated by commas; their rows are mixed in order of arrival")
    add("--partition", type=int, default=0)
    add("--model", choices=("lenet5", "mlp"), default="lenet5")
    add("--batch", type=int, default=64)
    add("--tick", type=float, metavar="S")
    add("--batch-max", type=int, default=1024, help="maximum number of rows per tick")
    add("--hook", choices=("none", "fp16", "powersgd1", "powersgd2", "powersgd4"), default="none")
    add("--local-steps", type=int, metavar="H", help="mean of the parameters after H steps, instead of DDP")
    add("--no-ddp", action="store_true", help="no synchronization: every rank trains alone")
    add("--no-kafka", action="store_true")
    add("--mnist", metavar="FOLDER", help="with --no-kafka: train on MNIST from this folder instead of random rows")
    add("--rows", type=int, help="rows of this rank, then exit")
    add("--batch-scheduling", action="store_true", help="run Gloo's threads under SCHED_BATCH, as Rivulet does")
    add("--lr", type=float, default=0.05)
    add("--momentum", type=float, default=0.9)
    add("--seed", type=int, default=1)
    add("--progress", metavar="FILE")
    add("--snapshots", metavar="FOLDER", help="rank 0 saves its parameters there once per second")
    return parser.parse_args()


def process_age():
    """Returns the seconds since the start of the process, including interpreter and imports."""
    with open("/proc/self/stat") as stat:
        started = int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0]) - started


def keep_freed_blocks():
    """Configures malloc to keep freed blocks. Otherwise each step returns its tensors to the kernel and faults them in again."""
    trim_threshold, mmap_threshold = -1, -3
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, 1 << 30)
    libc.mallopt(trim_threshold, 1 << 30)


class Progress:
    def __init__(self, path):
        with open(path, "w+b") as file:
            file.truncate(24)
            self._map = mmap.mmap(file.fileno(), 24)
        self._first_step, self._steps, self._rows = 0.0, 0, 0

    def stepped(self, rows):
        self._first_step = self._first_step or process_age()
        self._steps += 1
        self._rows += rows
        struct.pack_into("3d", self._map, 0, self._first_step, self._steps, self._rows)


class Snapshots:
    """Saves the parameters as flat float32, in files named by the seconds since 1970."""

    def __init__(self, torch, folder, network):
        self._torch, self._folder, self._network, self._next = torch, folder, network, 0.0

    def stepped(self, _rows):
        if time.time() >= self._next:
            self.save()

    def save(self):
        now = time.time()
        self._next = now + 1
        # Not parameters_to_vector: it cannot flatten channels_last.
        flat = self._torch.cat([parameter.detach().reshape(-1) for parameter in self._network.parameters()])
        unfinished = os.path.join(self._folder, "unfinished")
        flat.numpy().tofile(unfinished)
        os.rename(unfinished, os.path.join(self._folder, f"{now:.3f}.f32"))


class Training:
    """Model, optimizer and communication with other ranks."""

    def __init__(self, args):
        import torch
        from networks import make_network

        self.args, self.torch = args, torch
        torch.set_num_threads(1)
        torch.manual_seed(args.seed)
        self.network = make_network(torch, args.model)
        self.alone = args.no_ddp or args.world == 1 or args.local_steps is not None
        self.model = self.network if self.alone else self._distributed()
        self.optimizer = torch.optim.SGD(self.network.parameters(), args.lr, args.momentum, fused=True)
        if args.local_steps is not None:
            self._average_parameters()

    def _average_parameters(self):
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        from torch.distributed.optim import PostLocalSGDOptimizer

        self._join()
        for parameter in self.network.parameters():
            self.torch.distributed.broadcast(parameter.data, 0)
        averager = PeriodicModelAverager(period=self.args.local_steps, warmup_steps=0)
        self.optimizer = PostLocalSGDOptimizer(self.optimizer, averager)

    def _join(self):
        import torch.distributed

        args = self.args
        os.environ["GLOO_SOCKET_IFNAME"] = args.interface
        if args.batch_scheduling:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # inherited by the threads of Gloo
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"tcp://{args.store}",
            rank=args.rank,
            world_size=args.world,
            timeout=datetime.timedelta(seconds=300),
        )
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    def _distributed(self):
        self._join()
        torch = self.torch
        model = torch.nn.parallel.DistributedDataParallel(
            self.network, gradient_as_bucket_view=True, static_graph=True, broadcast_buffers=False, bucket_cap_mb=1024
        )
        self._compress(model)
        return model

    def _compress(self, model):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

        if self.args.hook == "fp16":
            model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        elif self.args.hook.startswith("powersgd"):
            rank = int(self.args.hook[-1])
            state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2)
            model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)

    def step(self, pixels, labels):
        """A conventional step with the mean of the ranks' mean gradients."""
        self.torch.nn.functional.cross_entropy(self.model(pixels), labels).backward()
        self._update()

    def weighted_step(self, pixels, labels, rows):
        """A step with the mean over all rows. DDP averages over ranks, so sums of rows are scaled by ranks / rows."""
        total = self.torch.tensor([float(rows)])
        counted = None if self.alone else self.torch.distributed.all_reduce(total, async_op=True)
        loss = self.torch.nn.functional.cross_entropy(self.model(pixels), labels, reduction="sum")
        (loss if rows else loss * 0).backward()  # a rank without rows participates with weight 0
        if counted is not None:
            counted.wait()
        if total.item() == 0:
            self.optimizer.zero_grad(set_to_none=False)
            return
        for parameter in self.network.parameters():
            parameter.grad.mul_((1 if self.alone else self.args.world) / total.item())
        self._update()

    def _update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.alone)  # in a group the gradients are views of the bucket


def conventional_steps(args, training, batches):
    while True:
        training.step(*batches.next(args.batch))
        yield args.batch


def ticked_steps(args, training, rows, batches):
    from rows import ROW_BYTES

    due = time.monotonic()
    while True:
        due = max(due + args.tick, time.monotonic() - args.tick)
        time.sleep(max(0.0, due - time.monotonic()))
        values = rows.at_most(args.batch_max)
        training.weighted_step(*batches.tensors(values or [bytes(ROW_BYTES)]), len(values))
        yield len(values)


def main():
    args = arguments()
    keep_freed_blocks()
    training = Training(args)
    from rows import QUEUE_MIB, Batches, KafkaRows, MemoryRows, mnist_rows, random_rows

    if args.no_kafka:
        rows = MemoryRows(mnist_rows(args.mnist, args) if args.mnist else random_rows(args.seed))
    else:
        rows = KafkaRows(args.brokers, args.topic, args.partition, QUEUE_MIB[args.model])
    batches = Batches(training.torch, rows)
    observers = [Progress(args.progress)] if args.progress else []
    snapshots = Snapshots(training.torch, args.snapshots, training.network) if args.snapshots else None
    if snapshots and args.rank == 0:
        observers.append(snapshots)
    gc.freeze()
    gc.disable()
    steps = ticked_steps(args, training, rows, batches) if args.tick else conventional_steps(args, training, batches)
    trained = 0
    for count in steps:
        for observer in observers:
            observer.stepped(count)
        trained += count
        if args.rows and trained >= args.rows:
            break
    if snapshots and args.rank == 0:
        snapshots.save()


if __name__ == "__main__":
    main()
