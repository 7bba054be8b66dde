"""The files under deploy/: they parse, name what exists, and hold no secret. They are not run here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
import yaml

from regionmarker.cli.app import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def serve_options() -> set[str]:
    serve = typer.main.get_command(app).commands["serve"]
    return {option for parameter in serve.params for option in parameter.opts}


def instructions(text: str) -> list[tuple[str, str]]:
    """A Dockerfile's instructions, continued lines joined."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1].strip()) for line in lines if line.strip()]


@pytest.fixture(scope="module")
def dockerfile():
    return instructions((DEPLOY / "Dockerfile").read_text())


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def kubernetes():
    return {part["kind"]: part for part in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}


# ---- Dockerfile


def complaints(found: list[tuple[str, str]]) -> list[str]:
    """What a linter of Dockerfiles would say."""
    said = []
    names = [name for name, _ in found]
    for name, value in found:
        if name == "FROM" and (":" not in value.split()[0] or value.split()[0].endswith(":latest")):
            said.append("a base image without a version")
        if name == "RUN" and "pip install" in value and "--no-cache-dir" not in value:
            said.append("pip keeps its cache")
        if name in ("CMD", "ENTRYPOINT") and not value.startswith("["):
            said.append("a shell between the signals and the process")
        if name == "ADD":
            said.append("ADD where COPY would do")
        if name == "ENV" and re.search(r"(?i)token|password|secret|passphrase", value):
            said.append("a secret in an image")
    last_user = max((place for place, name in enumerate(names) if name == "USER"), default=-1)
    if last_user < max(place for place, name in enumerate(names) if name == "FROM") or found[last_user][1] in (
        "root",
        "0",
    ):
        said.append("the process runs as root")
    return said


def test_a_linter_has_nothing_to_say(dockerfile):
    assert complaints(dockerfile) == []


def test_the_linter_finds_what_it_should():
    bad = "FROM python\nENV API_TOKEN=x\nADD . .\nRUN pip install x\nCMD regionmarker serve\n"
    assert len(complaints(instructions(bad))) == 6


def test_it_copies_what_exists_and_starts_what_exists(dockerfile):
    for name, value in dockerfile:
        if name == "COPY" and not value.startswith("--from"):
            for source in value.split()[:-1]:
                assert (ROOT / source).exists(), source
    (command,) = [value for name, value in dockerfile if name == "CMD"]
    assert set(re.findall(r'"(--[a-z-]+)"', command)) <= serve_options()
    extras = set(re.search(r"\.\[([a-z,-]+)\]", str(dockerfile))[1].split(","))
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", pyproject, re.MULTILINE) for extra in extras)


def test_nothing_but_the_source_reaches_the_builder():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert lines[0] == "*"
    assert "**/*.rmkey*" in lines[lines.index("!src") :]


# ---- compose


def test_the_compose_file_names_what_exists(compose):
    services = compose["services"]
    gateway = services["gateway"]
    assert (DEPLOY / gateway["build"]["context"] / gateway["build"]["dockerfile"]).exists()
    assert {word for word in gateway["command"] if word.startswith("--")} <= serve_options()
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or source.startswith(("./", "${"))
        if "image" in service:
            assert re.search(r":[\w.-]*\d", service["image"]), "an image without a version"
    assert (DEPLOY / "nginx.conf").exists()


def test_secrets_come_from_the_environment(compose):
    text = (DEPLOY / "compose.yaml").read_text()
    for name in ("POSTGRES_PASSWORD", "ADMIN_TOKEN", "MODEL"):
        assert f"${{{name}:?" in text  # refuses to start without it
        assert re.search(rf"^{name}=", (DEPLOY / "example.env").read_text(), re.MULTILINE)
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text()
    assert compose["services"]["gateway"]["read_only"] is True


# ---- Kubernetes


def test_the_deployment_drains_within_its_grace(kubernetes):
    pod = kubernetes["Deployment"]["spec"]["template"]["spec"]
    (gateway,) = pod["containers"]
    options = dict(argument.split("=", 1) for argument in gateway["args"] if "=" in argument)
    assert set(options) <= serve_options()
    assert float(options["--drain-delay"]) + float(options["--grace"]) < pod["terminationGracePeriodSeconds"]
    assert gateway["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert gateway["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_nothing_runs_as_root_and_nothing_secret_is_written_down(kubernetes):
    pod = kubernetes["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in (*pod["containers"], *pod["initContainers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert not container["image"].endswith(":latest")
    assert all("valueFrom" in variable for variable in pod["containers"][0]["env"])


def test_selectors_fit_their_labels(kubernetes):
    labels = kubernetes["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert kubernetes["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert kubernetes["Service"]["spec"]["selector"] == labels
    assert kubernetes["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert kubernetes["PodDisruptionBudget"]["spec"]["minAvailable"] < kubernetes["Deployment"]["spec"]["replicas"]


# ---- nginx


def test_nginx_hides_what_is_for_the_inside():
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("{") == text.count("}")
    log_format = re.search(r"log_format plain '([^']*)'", text)[1]
    assert not re.search(r"\$(request\b|args|http_|request_body|query)", log_format)
    assert re.search(r"location / \{\s*return 404;", text)
    assert re.search(r"location /console \{\s*allow [\d./]+;\s*deny all;", text)


def test_nginx_accepts_it(tmp_path):
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("the program nginx is not installed")
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gateway")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    (tmp_path / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "privkey.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    text = (DEPLOY / "nginx.conf").read_text()
    for there, here in (
        ("/etc/nginx/tls", str(tmp_path)),
        ("server gateway:8000", "server 127.0.0.1:8000"),
        ("/tmp/nginx.pid", str(tmp_path / "nginx.pid")),
        ("/dev/stdout", str(tmp_path / "access.log")),
    ):
        assert there in text
        text = text.replace(there, here)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = " ".join(f"{kind}_temp_path {tmp_path / kind};" for kind in kinds)
    (tmp_path / "nginx.conf").write_text(text.replace("http {", f"http {{ {folders}", 1))
    command = [program, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
