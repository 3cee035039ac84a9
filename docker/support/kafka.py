"""A real Kafka from the jars that scripts/setup --for tests brings, in the way of the image apache/kafka: by KAFKA_* variables."""
import shlex
import socket
import subprocess
from pathlib import Path

from support import cache

# What the image reads for itself; everything else that begins with KAFKA_ is a property of the server.
NOT_PROPERTIES = ("KAFKA_HEAP_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_OPTS", "KAFKA_JMX_OPTS")
LOG_SETTINGS = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class NoKafka(Exception):
    """The jars are not there, or the server's folder could not be made."""


def jars():
    folder = cache.folder() / "kafka-3.9.1"
    if not (folder / "kafka_2.13-3.9.1.jar").exists():
        raise NoKafka(f"no Kafka jars in {folder}: run scripts/setup --for tests")
    return folder


def free_ports(count):
    """Ports of loopback that nobody listens on; another program may take one until it is used."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def properties(environment):
    """KAFKA_LOG_DIRS=/data -> log.dirs=/data"""
    return {name[len("KAFKA_"):].lower().replace("_", "."): value for name, value in environment.items()
            if name.startswith("KAFKA_") and name not in NOT_PROPERTIES}


def java(folder, main_class, heap="-Xms64m -Xmx384m"):
    """One compiler tier and one collector thread: what starts fastest."""
    settings = Path(folder) / "log4j.properties"
    settings.write_text(LOG_SETTINGS)
    return ["java", *shlex.split(heap), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true",
            f"-Dlog4j.configuration=file:{settings}", "-cp", f"{jars()}/*", main_class]


def prepare(environment, folder):
    """Writes and formats what the server needs. Returns the command that starts it."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties(environment).items()))
    format_ = [*java(folder, "kafka.tools.StorageTool"), "format", "--ignore-formatted", "--cluster-id",
               environment["CLUSTER_ID"], "--config", str(file)]
    done = subprocess.run(format_, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise NoKafka(f"Kafka's StorageTool failed: {done.stdout}{done.stderr}")
    return [*java(folder, "kafka.Kafka", environment.get("KAFKA_HEAP_OPTS", "-Xmx384m")), str(file)]


def write_tool(file, folder):
    """The image's kafka-topics.sh, for these jars."""
    file.parent.mkdir(parents=True, exist_ok=True)
    command = java(folder, "org.apache.kafka.tools.TopicCommand", "-Xmx128m")
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    file.chmod(0o755)
