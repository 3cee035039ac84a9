"""Environment for the commands of the pages: an isolated machine from their point of view.

`enter` starts a program in namespaces with nothing but loopback, empty /tmp, /run, /var/lib, and all else only to be read; in there
localhost:9092 is a real Kafka, and kafka-1.example.org:9093 the same one with a password."""
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import processes  # noqa: E402

HOST = "kafka-1.example.org"
PASSWORD = "pa55-of-the-pages-3Wq"
TOOLS = {
    "kafka-acls.sh": "kafka.admin.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records.sh": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
PROPERTIES = f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9094
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://localhost:9092,SASL_SSL://{HOST}:9093,CONTROLLER://localhost:9094
advertised.listeners=PLAINTEXT://localhost:9092,SASL_SSL://{HOST}:9093
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location=FOLDER/server.pem
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
log.dirs=FOLDER/data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""
LOG_SETTINGS = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
CERTIFICATES = f"""openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
openssl req -newkey rsa:2048 -nodes -subj /CN={HOST} -keyout server.key -out server.csr
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san.cnf -out server.crt
openssl pkcs8 -topk8 -nocrypt -in server.key -out server.pkcs8
cat server.pkcs8 server.crt ca.pem > server.pem
"""


def enter(command, folder, **more):
    """Runs it inside to its end, and ends all of its children; its files in `folder` remain."""
    (folder / "hosts").write_text(f"127.0.0.1 localhost {HOST}\n")
    (folder / "tmp").mkdir(mode=0o1777)
    words = ["bwrap", "--die-with-parent", "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
             "--bind", str(folder / "tmp"), "/tmp", "--tmpfs", "/run", "--tmpfs", "/var/lib", "--bind", str(folder / "hosts"), "/etc/hosts",
             "--tmpfs", "/etc/ssl/certs"]
    # They may be below /tmp, which is replaced inside.
    words += ["--ro-bind", str(ROOT), str(ROOT), "--bind", str(folder), str(folder)]
    return subprocess.run([*words, "--", *map(str, command)], **more)


def java(folder, main_class, heap="-Xmx384m"):
    """Java command for Kafka's jars. One compiler tier and one collector thread start fastest."""
    jars = processes.cache() / "kafka-3.9.1"
    if not (jars / "kafka_2.13-3.9.1.jar").exists():
        sys.exit(f"no Kafka jars in {jars}: run scripts/setup --for tests")
    settings = Path(folder) / "log4j.properties"
    settings.write_text(LOG_SETTINGS)
    return ["java", heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true",
            f"-Dlog4j.configuration=file:{settings}", "-cp", f"{jars}/*", main_class]


def start_kafka(folder):
    """Starts the broker and waits until it answers. Must run inside."""
    folder.mkdir()
    (folder / "san.cnf").write_text(f"subjectAltName=DNS:{HOST}\n")
    subprocess.run(["bash", "-euc", CERTIFICATES], cwd=folder, check=True, capture_output=True)
    file = folder / "server.properties"
    file.write_text(PROPERTIES.replace("FOLDER", str(folder)))
    subprocess.run([*java(folder, "kafka.tools.StorageTool"), "format", "--cluster-id", "cml2dWxldC10ZXN0LTAwMQ",
                    "--config", file, "--add-scram", f"SCRAM-SHA-512=[name=rivulet,password={PASSWORD}]"],
                   check=True, capture_output=True, timeout=120)
    broker = processes.Running("kafka", [*java(folder, "kafka.Kafka"), file], os.environ.copy(), folder / "kafka.log")

    def answers():
        if broker.code is not None:
            sys.exit(f"Kafka ended: {broker.tail()}")
        return subprocess.run(["kcat", "-L", "-b", "localhost:9092", "-m", "2"], capture_output=True).returncode == 0
    processes.until(answers, 60)
    Path("/etc/ssl/certs/kafka-ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    Path("/run/secrets").mkdir()
    Path("/run/secrets/kafka_password").write_text(PASSWORD + "\n")
    return broker


def write_tools(folder):
    """Kafka's own tools, as wrappers for its jars."""
    folder.mkdir()
    for name, main in TOOLS.items():
        command = java(folder, main, "-Xmx96m")
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def make_desk(folder):
    """A page's working folder: the parts of the repository that commands name, and space for output."""
    folder.mkdir()
    for part in ("build", "core", "dashboards", "docker", "docs", "examples", "scripts"):
        (folder / part).symlink_to(ROOT / part)
    return folder


def missing_programs():
    processes.use_tools()
    needed = ("bwrap", "curl", "java", "kcat", "openssl", "promtool")
    return [name for name in needed if shutil.which(name) is None]
