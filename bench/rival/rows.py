"""Rows for the rival: from Kafka as fast as Python can read them, or from memory for the training loop alone."""

import gzip
import pathlib
import random

ROW_BYTES = 785  # `raw` rows: the label (u8), then 28 x 28 pixels (u8)
PIXEL_MEAN, PIXEL_DEVIATION = 0.1307, 0.3081


# Prefetch of the client in MiB. More does not speed up rows, but takes memory, and may hold enough rows that nothing is
# fetched during a measurement. 16 is Rivulet's limit; the MLP reads rows ten times as fast.
QUEUE_MIB = {"lenet5": 16, "mlp": 64}


class KafkaRows:
    """Rows of one partition of each topic, from `offset` on. The client prefetches on its own threads."""

    def __init__(self, brokers, topics, partition, queue_mib, offset=0):
        from confluent_kafka import Consumer, Message, TopicPartition

        self._value_of = Message.value
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": "rival",
                "enable.auto.commit": False,
                "check.crcs": False,
                "fetch.wait.max.ms": 20,
                "fetch.queue.backoff.ms": 10,  # a full queue does not delay the next fetch by a second
                "queued.min.messages": 1_000_000,
                "queued.max.messages.kbytes": queue_mib * 1024,
                "fetch.message.max.bytes": 8 << 20,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, offset) for topic in topics.split(",")])

    def wait_for(self, count):
        """Returns the values of `count` rows."""
        values = []
        while len(values) < count:
            values += self._take(count - len(values), 1.0)
        return values

    def at_most(self, count):
        """Returns the values of rows that have arrived, `count` at most."""
        return self._take(count, 0)

    def _take(self, count, timeout):
        values = list(map(self._value_of, self._consumer.consume(count, timeout)))
        if sum(map(len, values)) == len(values) * ROW_BYTES:
            return values
        return [value for value in values if len(value) == ROW_BYTES]  # the value of an error is its message


def random_rows(seed):
    draw = random.Random(seed)
    return [bytes([draw.randrange(10)]) + draw.randbytes(ROW_BYTES - 1) for _ in range(4096)]


def mnist_rows(folder, args):
    """Returns this rank's share, shuffled."""
    with gzip.open(pathlib.Path(folder) / "train-images-idx3-ubyte.gz") as file:
        pixels = file.read()[16:]
    with gzip.open(pathlib.Path(folder) / "train-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    order = list(range(len(labels)))
    random.Random(args.seed).shuffle(order)
    size = ROW_BYTES - 1
    return [labels[i : i + 1] + pixels[i * size : (i + 1) * size] for i in order[args.rank :: args.world]]


class MemoryRows:
    """Repeats the same rows."""

    def __init__(self, values):
        self._values, self._next = values, 0

    def wait_for(self, count):
        begin, self._next = self._next, (self._next + count) % (len(self._values) - count)
        return self._values[begin : begin + count]

    at_most = wait_for


class Batches:
    """Pixels and labels as tensors: one join, one view and one conversion for each block of batches."""

    BLOCK = 4  # batches: larger ones leave the cache

    def __init__(self, torch, rows):
        self._torch, self._rows, self._ready = torch, rows, []

    def next(self, count):
        """Waits for `count` rows; reads a block of batches at once if enough rows have arrived."""
        if not self._ready:
            values = self._rows.at_most(self.BLOCK * count)
            values += self._rows.wait_for(-len(values) % count if values else count)
            pixels, labels = self.tensors(values)
            self._ready = list(zip(pixels.split(count), labels.split(count), strict=True))[::-1]
        return self._ready.pop()

    def tensors(self, values):
        block = self._torch.frombuffer(bytearray().join(values), dtype=self._torch.uint8).view(-1, ROW_BYTES)
        pixels = block[:, 1:].to(self._torch.float32)
        pixels.mul_(1 / (255 * PIXEL_DEVIATION)).sub_(PIXEL_MEAN / PIXEL_DEVIATION)
        return pixels, block[:, 0].long()
