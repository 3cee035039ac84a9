"""docker/compose.yaml and docker/compose.edge.yaml, read by docker-compose and run by podman, which speaks Docker's language."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import yaml

import engine
import images
from device import TOKEN, check, token_file
from engine import PREFIX, ROOT, Failed, podman, processes

WITHOUT = ("grafana",)  # which nobody here can bring
DEVICES = [f"device-{i}" for i in range(4)]
ROWS = 2000  # of examples/sensors-json/readings.jsonl
ENDS_WELL = {"kafka": (0, 143)}


class Engine:
    """podman's service, and what systemd's timers do for it elsewhere: every container's health check, every two seconds."""

    def __init__(self, folder):
        self.address = f"unix://{folder}/podman.sock"
        self.log = folder / "podman.log"

    def __enter__(self):
        os.environ["DOCKER_HOST"] = self.address
        self.service = processes.Running("podman", ["podman", "system", "service", "--time=0", self.address], os.environ.copy(), self.log)
        self.ended = threading.Event()
        self.timer = threading.Thread(target=self.ask_health)
        self.timer.start()
        processes.until(lambda: os.path.exists(self.address.removeprefix("unix://")), 30)
        return self

    def ask_health(self):
        while not self.ended.wait(2):
            for name in podman("ps", "--format", "{{.Names}}").split():
                with contextlib.suppress(subprocess.TimeoutExpired):  # it is asked again
                    subprocess.run(["podman", "healthcheck", "run", name], capture_output=True, timeout=60)

    def __exit__(self, *error):
        self.ended.set()
        self.timer.join()
        processes.stop([self.service])


class Project:
    def __init__(self, name, file, **environment):
        self.name, self.file = PREFIX + name, ROOT / "docker" / file
        self.environment = {**os.environ, **environment}

    def __call__(self, *words, **more):
        command = ["docker-compose", "--project-name", self.name, "--file", self.file, *words]
        return engine.run(*command, env=self.environment, seconds=180, **more)

    def container(self, service):
        return f"{self.name}_{service}_1"

    def inspect(self, service, path):
        return podman("inspect", "--format", f"{{{{{path}}}}}", self.container(service))

    def until(self, service, what, condition, seconds=120):
        try:
            return processes.until(condition, engine.SLACK * seconds)
        except TimeoutError:
            raise Failed(f"{service} is not {what}: {podman('logs', '--tail', '40', self.container(service))}") from None

    def until_healthy(self, service):
        self.until(service, "healthy", lambda: self.inspect(service, ".State.Health.Status") == "healthy")
        print(f"ok     {service} is healthy", flush=True)

    def kill(self, service):
        """As a crash: the engine was not asked, so it is its to start the container again."""
        before = self.inspect(service, ".RestartCount"), self.inspect(service, ".State.Pid")
        os.kill(int(before[1]), signal.SIGKILL)
        self.until(service, "started again", lambda: self.inspect(service, ".RestartCount") > before[0])

    def stop(self, services):
        self("stop")
        codes = {service: int(self.inspect(service, ".State.ExitCode")) for service in services}
        wrong = {service: code for service, code in codes.items() if code not in ENDS_WELL.get(service, (0,))}
        check(not wrong, f"all end well when they are told to stop: {codes}")


def status(address, token):
    code, body = processes.get(f"http://{address}/api/v1/status", token)
    return json.loads(body) if code == 200 else None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def kafka_on_this_machine():
    """compose.yaml's broker in the machine's own network, as one that a device at the edge dials."""
    said = Project("site", "compose.yaml")("config")
    broker, controller = free_port(), free_port()
    service = yaml.safe_load(said)["services"]["kafka"]
    local = {name: str(value).replace("0.0.0.0:9092", f"127.0.0.1:{broker}").replace("kafka:9092", f"127.0.0.1:{broker}")
             .replace("127.0.0.1:9093", f"127.0.0.1:{controller}") for name, value in service["environment"].items()}
    podman("run", "--detach", "--name", f"{PREFIX}kafka", "--network", "host", *(f"--env={name}={value}" for name, value in local.items()),
           images.KAFKA)
    tool = ["podman", "exec", f"{PREFIX}kafka", "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", f"127.0.0.1:{broker}"]
    create = [*tool, "--create", "--if-not-exists", "--topic", "readings", "--partitions", "1"]
    processes.until(lambda: subprocess.run(create, capture_output=True, timeout=60).returncode == 0, 90)
    return f"127.0.0.1:{broker}"


def edge(folder):
    """compose.edge.yaml with a real Kafka: a crash in the middle of 2000 rows, and none of them lost."""
    brokers, pages = kafka_on_this_machine(), f"127.0.0.1:{free_port()}"
    configuration = folder / "device.toml"
    configuration.write_text((ROOT / "examples/sensors-json/device.toml").read_text() + '[checkpoint]\nevery = { interval = "1s" }\n')
    edge_ = Project("edge", "compose.edge.yaml", RIVULET_ID="edge-1", RIVULET_BROKERS=brokers, RIVULET_PARTITIONS="0",
                    RIVULET_PEER_BIND="127.0.0.1", RIVULET_HTTP=pages, RIVULET_HTTP_TOKEN_FILE=str(token_file(folder)),
                    RIVULET_DEVICE_TOML=str(configuration))
    edge_("up", "--detach")
    saved = Path(podman("volume", "inspect", "--format", "{{.Mountpoint}}", f"{edge_.name}_rivulet")) / "checkpoints"
    data = ROOT / "examples/sensors-json/readings.jsonl"
    podman("run", "--detach", "--name", f"{PREFIX}feeder", "--network", "host", "--read-only", "--volume", f"{data}:/data.jsonl:ro",
           "--env", f"RIVULET_BROKERS={brokers}", images.OURS, "feed", "/data.jsonl", "--topic", "readings", "--rates", "150")

    def seen(next_):
        one = status(pages, TOKEN)
        return one if one and one["ledger"] and one["ledger"][0]["next"] >= next_ else None
    edge_.until("rivulet", "training, and a state is saved", lambda: seen(300) and any(saved.glob("*")))
    edge_.until_healthy("rivulet")
    edge_.kill("rivulet")
    end = edge_.until("rivulet", "through", lambda: seen(ROWS))
    book = end["ledger"][0]
    fates = book["rows_trained"] + sum(book["rows_dropped"].values())
    check(book["balanced"] and book["start"] == 0 and fates == book["next"] == ROWS,
          f"after a crash in their middle all {ROWS} rows have one fate: {book}")
    check(end["rows_trained"] < ROWS, f"of which the second start trained {end['rows_trained']}: it went on from its volume")
    edge_.stop(["rivulet"])
    said = edge_("run", "--rm", "-T", "--no-deps", "rivulet", "ledger", "verify")
    check("balanced" in said and "unbalanced" not in said, "the books in the volume agree with Kafka's log")


def prometheus(query):
    code, body = processes.get(f"http://127.0.0.1:9090/api/v1/{query}")
    return json.loads(body)["data"] if code == 200 else None


def devices_seen():
    seen = prometheus("query?query=sum(up)")
    return bool(seen and seen["result"] and float(seen["result"][0]["value"][1]) == len(DEVICES))


def site():
    """compose.yaml as `docker compose up` runs it, but Grafana."""
    all_ = Project("site", "compose.yaml", KAFKA_IMAGE=images.KAFKA, PROMETHEUS_IMAGE=images.PROMETHEUS)
    services = [name for name in all_("config", "--services").split() if name not in WITHOUT]
    check(set(services) > {"kafka", "feeder", "prometheus", *DEVICES}, f"the file has {len(services)} services")
    all_("up", "--detach", "--no-build", *services)
    said = all_("run", "--rm", "-T", "--no-deps", "--entrypoint", "cat", "token", "/run/rivulet-token/http")
    token = said.splitlines()[-1]  # behind what docker-compose says of starting

    def in_group(name, after=0):
        """Its status, once it is in a group of all in a later view than `after`, and has trained there."""
        page = podman("port", all_.container(name), "9464/tcp")
        seen = status(page, token)
        return seen if seen and seen["world"] == len(DEVICES) and seen["view"] > after and seen["rows_trained"] > 0 else None

    for name in DEVICES:
        all_.until_healthy(name)
        seen = all_.until(name, "training", lambda name=name: in_group(name))
        check(seen["steps"] > 0, f"{name} is in a group of {seen['world']}, {seen['rows_trained']} rows trained")
        check(status(podman("port", all_.container(name), "9464/tcp"), None) is None, "and shows nothing without the token")
    all_.until_healthy("prometheus")
    all_.until("prometheus", "seeing every device", devices_seen)
    check(len(prometheus("rules")["groups"]) > 0, "Prometheus has the rules")
    view = in_group("device-0")["view"]
    all_.kill("device-2")
    again = all_.until("device-2", "back", lambda: in_group("device-2", view))
    check(again, f"device-2 was killed, started again and trains in view {again['view']}")
    all_.stop([name for name in services if name not in ("topics", "token")])
