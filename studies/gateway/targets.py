"""The servers under load: the stub itself, our gateway before it, LiteLLM's proxy before it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from studies.gateway.stub import unit_rows

MODEL = "null-model"  # not "null", which YAML reads as nothing
ROOT = Path(__file__).parents[2]
_LITELLM = {
    "LITELLM_LOG": "ERROR",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # no keys to check, as in our gateway here
}


@contextlib.contextmanager
def process(*command: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a program as long as the block."""
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, cwd=cwd,
    )  # fmt: skip
    try:
        yield running
    finally:
        running.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(15)
        running.kill()
        running.communicate()


@contextlib.contextmanager
def stub(work: float = 0.0) -> Iterator[int]:
    """Run the null upstream; gives its port."""
    with process(sys.executable, "-m", "studies.gateway.stub", "--work", str(work), cwd=ROOT) as running:
        yield int(running.stdout.readline())


def make_key(folder: Path) -> Path:
    """Make a key of the stub's width."""
    from regionmarker import RegionMarker

    rows = unit_rows(1200, seed=1)
    marker = RegionMarker(pool=64, reservoir=256).fit([f"text {n}" for n in range(len(rows))], embeddings=rows)
    marker.save(folder / "bench.rmkey")
    return folder / "bench.rmkey"


@contextlib.contextmanager
def gateway(key: Path, upstream: int, *options: str) -> Iterator[tuple[int, int]]:
    """Run our gateway before the stub; gives its port and its process id."""
    command = ("-m", "regionmarker", "serve", "--key", str(key), "--port", "0", "--drain-delay", "0")
    spec = f"openai:http://127.0.0.1:{upstream}/v1#{MODEL}"
    with process(sys.executable, *command, "--upstream", spec, *options) as running:
        yield json.loads(running.stderr.readline())["port"], running.pid


@contextlib.contextmanager
def litellm(venv: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """Run LiteLLM's proxy, one worker, before the stub; gives its port and its process id."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        base = f"http://127.0.0.1:{upstream}/v1"
        config.write_text(
            f"model_list:\n- model_name: {MODEL}\n  litellm_params:\n    model: openai/{MODEL}\n"
            f"    api_base: {base}\n    api_key: sk-none\nlitellm_settings:\n  drop_params: true\n"
        )
        arguments = ("--config", str(config), "--port", str(port), "--num_workers", "1", "--host", "127.0.0.1")
        with (Path(folder) / "log").open("w") as log:
            running = subprocess.Popen(
                [str(venv / "bin" / "litellm"), *arguments], stdout=log, stderr=log,
                env={**os.environ, **_LITELLM}, cwd=folder,
            )  # fmt: skip
            try:
                _wait_for(port, running)
                yield port, running.pid
            finally:
                running.terminate()
                running.wait(20)


def _wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if running.poll() is not None:
            raise SystemExit("LiteLLM's proxy did not start")
        with contextlib.suppress(OSError):  # a URLError and a timeout are such, too
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=2)
            return
        time.sleep(0.2)
    raise SystemExit("LiteLLM's proxy did not come up")


def memory(pid: int) -> float:
    """Return a process's resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float(np.nan)


def processor_seconds(process: int) -> float:
    """Return the processor time of another process and its threads, to the nanosecond; see clock_getcpuclockid(3)."""
    return time.clock_gettime((~process << 3) | 2)
