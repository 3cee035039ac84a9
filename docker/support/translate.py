"""A compose file's services as processes of this machine: names, ports and paths are made local, the rest stays as it is."""
import os
import re
from pathlib import Path

from support import compose, dockerfile, kafka, program

SHIMS = "/opt/kafka/bin"  # of the image apache/kafka


class Site:
    """Where everything of one run lies: a folder for each service, a port of loopback for each port of a service."""

    def __init__(self, path, document, folder, binary, lacks):
        self.path, self.document, self.folder = Path(path), document, Path(folder)
        self.binary, self.lacks = binary, lacks
        self.services = document["services"]
        self.image = dockerfile.images()["cpu"]
        self.ports = self.choose_ports()
        for name in self.services:
            (self.folder / name).mkdir(parents=True)

    def inner_ports(self, name):
        """All ports that a service's own settings name, and those that others dial."""
        texts = [str(self.services[name].get("environment", {})), str(self.services[name].get("ports", []))]
        own = "|".join(map(re.escape, self.own_hosts(name)))
        found = {int(port) for text in texts for port in re.findall(rf"(?:{own}):(\d+)\b(?!:)", text)}
        found |= {int(port.rsplit(":", 1)[1]) for port in self.services[name].get("ports", [])}
        everywhere = str(self.services) + "".join(p.read_text() for p in self.mounted_files())
        return found | {int(port) for port in re.findall(rf"\b{re.escape(name)}:(\d+)\b", everywhere)}

    def own_hosts(self, name):
        """By which a service names itself. In the machine's own network loopback is the machine's, and may be another's."""
        on_host = self.services[name].get("network_mode") == "host"
        return ("0.0.0.0",) if on_host else ("0.0.0.0", "127.0.0.1", "localhost")

    def choose_ports(self):
        wanted = [(name, port) for name in self.services for port in sorted(self.inner_ports(name))]
        return dict(zip(wanted, kafka.free_ports(len(wanted))))

    def mounted_files(self):
        """Configuration files of ours that are mounted one by one."""
        found = set()
        for service in self.services.values():
            for source, target, _ in compose.mounts(service, self.document, self.path):
                if isinstance(source, Path) and source.is_file() and target.endswith((".yaml", ".toml")):
                    found.add(source)
        return sorted(found)

    def places(self, name):
        """Path inside -> path here, the longest first."""
        places = {"/usr/bin/rivulet": str(self.binary), SHIMS: str(self.folder / "shims"), "/tmp": str(self.folder / name / "tmp")}
        for source, target, _ in compose.mounts(self.services[name], self.document, self.path):
            if isinstance(source, Path):
                places[target] = str(source)
            else:
                places[target] = str(self.folder / "volumes" / source)
                Path(places[target]).mkdir(parents=True, exist_ok=True)
        Path(places["/tmp"]).mkdir(exist_ok=True)
        return dict(sorted(places.items(), key=lambda pair: -len(pair[0])))

    def local(self, name, text):
        """A word of service `name`, for here."""
        def port(match):
            host, number = match[1], int(match[2])
            owner = name if host in self.own_hosts(name) else host
            if (owner, number) not in self.ports:
                return match[0]
            shown = host if host == "0.0.0.0" and not self.is_plain(name) else "127.0.0.1"
            return f"{shown}:{self.ports[owner, number]}"
        text = re.sub(r"\b([a-z][\w-]*|\d+\.\d+\.\d+\.\d+):(\d+)\b", port, text)
        places = self.places(name)
        inside = "|".join(map(re.escape, places))
        return re.sub(rf"(?<![\w/.-])({inside})(?=[/:\s'\"]|$)", lambda match: places[match[1]], text)

    def is_plain(self, name):
        """Whether its pages are on loopback, because this build has no token."""
        return not self.is_rivulet(name) or "http-token" in self.lacks

    def is_rivulet(self, name):
        return self.services[name]["image"].startswith("rivulet")

    def is_device(self, name):
        return self.is_rivulet(name) and self.services[name].get("command", self.image.command)[:1] == ["run"]

    def environment(self, name):
        given = {key: self.local(name, str(value)) for key, value in self.services[name].get("environment", {}).items()}
        if self.is_rivulet(name):
            given = {**self.image.environment, **given}
            if "http-token" in self.lacks:
                given.pop("RIVULET_SET_HTTP__TOKEN_FILE", None)
            if "RIVULET_PEER_BIND" in given:
                given["RIVULET_PEER_BIND"] = "127.0.0.1"
            if not self.is_device(name):  # whose image says where a device keeps things; nothing of it concerns others
                given = {key: value for key, value in given.items() if key in self.services[name].get("environment", {})}
        return program.environment(**given)

    def token(self, name):
        """What a device's readers must show; None while this build asks for nothing."""
        file = self.environment(name).get("RIVULET_SET_HTTP__TOKEN_FILE")
        return Path(file).read_text().strip() if file else None

    def translated_files(self, name):
        """The service's own files with names and paths of here: text that stands in for each mounted one."""
        for source, target, _ in compose.mounts(self.services[name], self.document, self.path):
            if isinstance(source, Path) and source.suffix == ".yaml" and source.is_file():
                copy = self.folder / name / source.name
                copy.write_text(self.local(name, source.read_text()))
                yield str(source), str(copy)

    def command(self, name):
        """The process that stands for the service; None if nothing here can."""
        service = self.services[name]
        image, words = service["image"], list(service.get("command", []))
        if "entrypoint" in service:
            words = [*service["entrypoint"], *words]
        elif self.is_rivulet(name):
            words = [*self.image.entrypoint, *(words or self.image.command)]
        elif "kafka" in image:
            kafka.write_tool(self.folder / "shims" / "kafka-topics.sh", self.folder / name)
            return kafka.prepare(self.environment(name), self.folder / name)
        elif "prometheus" in image:
            address = f"127.0.0.1:{self.ports[name, 9090]}"
            words = ["prometheus", *words, f"--web.listen-address={address}"]
        else:
            return None
        copies = dict(self.translated_files(name))
        local = [self.local(name, word) for word in words]
        for source, copy in copies.items():
            local = [word.replace(source, copy) for word in local]
        return local

    def health(self, name):
        """The service's own check as a command, a URL that must answer, or None."""
        check = self.services[name].get("healthcheck", {})
        if check.get("disable") or not check:
            return None
        words = [self.local(name, word) for word in check["test"][1:]]
        if words[0] == "wget":
            return words[-1]
        if self.is_rivulet(name) and "status" in self.lacks:
            return self.page(name, "/readyz")
        return words

    def page(self, name, path):
        port = self.environment(name)["RIVULET_HTTP"].rsplit(":", 1)[1]
        return f"http://127.0.0.1:{port}{path}"

    def not_there(self):
        """Paths that the file mounts and that are not there."""
        missing = []
        for name, service in self.services.items():
            for source, _, _ in compose.mounts(service, self.document, self.path):
                expected = "dashboards" in self.lacks and "dashboards" in source.parts if isinstance(source, Path) else True
                if not expected and not os.path.exists(source):
                    missing.append(f"{name}: {source}")
        return missing
