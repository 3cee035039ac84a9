#!/usr/bin/env python3
"""The other alternative: the devices do not train; all rows go to one trainer, a single rank.py.

    python ship.py --rank 0 --world 2 --brokers HOST:PORT --topic t-0 --mnist FOLDER

Sends this rank's share of MNIST repeatedly, as fast as the link allows, in the client's most compact form: zstd, large
batches. Runs until it is killed.
"""

import argparse
import contextlib
import time

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rows import mnist_rows


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rank", type=int, default=0)
    add("--world", type=int, default=1)
    add("--brokers", required=True)
    add("--topic", required=True)
    add("--mnist", metavar="FOLDER", required=True)
    add("--seed", type=int, default=1)
    return parser.parse_args()


def make_topic(admin, topic):
    """Creates the topic and waits until it is writable."""
    with contextlib.suppress(KafkaException):  # it exists already
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    while not any(partition.leader >= 0 for partition in admin.list_topics(topic).topics[topic].partitions.values()):
        time.sleep(0.1)


def main():
    args = arguments()
    properties = {"bootstrap.servers": args.brokers}
    make_topic(AdminClient(properties), args.topic)
    producer = Producer(
        {
            **properties,
            "compression.type": "zstd",
            "linger.ms": 100,
            "batch.size": 200_000,
            "acks": 1,
            "message.timeout.ms": 600_000,
            "queue.buffering.max.kbytes": 8192,
        }
    )
    rows = mnist_rows(args.mnist, args)
    while True:
        for row in rows:
            while True:
                try:
                    producer.produce(args.topic, row, partition=0)
                    break
                except BufferError:  # the link is the limit
                    producer.poll(0.1)
            producer.poll(0)


if __name__ == "__main__":
    main()
