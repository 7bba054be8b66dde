"""A process that holds a Ray cluster and runs jobs on it, told what to do by lines of JSON.

Ray leaves sockets and deprecated calls behind it; in a process of its own they disturb no other test.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from regionmarker import RegionMarker
from regionmarker.bulk.job import Job
from regionmarker.bulk.manifest import KeyLabel
from regionmarker.bulk.ray_engine import ray_engine
from regionmarker.bulk.run import run_job
from regionmarker.errors import RegionMarkerError
from regionmarker.keys.files import KeyReference
from regionmarker.ray_cluster import import_ray, start_ray


def mark(job: dict, reference: dict, named_by: dict | None = None) -> dict:
    plan, key = Job(**job), KeyReference(**reference)
    named = KeyReference(**named_by) if named_by else key
    outcome = run_job(plan, KeyLabel.of(RegionMarker.from_opened(named.open())), ray_engine(plan, key, workers=2))
    return {"manifest": outcome.manifest, "already_done": outcome.already_done}


def search(words: list[str]) -> dict:
    """Search this process's mapping of the object store for words, given in hexadecimal."""
    searched, found = 0, []
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, permissions, _, _, _, *name = line.split(maxsplit=5)
        if name and "plasma" in name[0] and "r" in permissions:
            start, end = (int(part, 16) for part in place.split("-"))
            with Path("/proc/self/mem").open("rb", buffering=0) as memory:
                memory.seek(start)
                content = memory.read(end - start)
            searched += len(content)
            found += [word for word in words if bytes.fromhex(word) in content]
    return {"searched": searched, "found": found}


def main() -> None:
    ray = import_ray()
    started = start_ray(
        ray, tries=5, num_cpus=2, include_dashboard=True, dashboard_port=0, object_store_memory=80_000_000
    )
    kept = []

    def put(word: str) -> dict:
        kept.append(ray.put(bytes.fromhex(word) * 4000))
        return {}

    answers = {"mark": mark, "search": search, "put": put}
    say({"address": started.address_info["address"], "session": started.address_info["session_dir"],
         "dashboard": started.dashboard_url})  # fmt: skip
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            say(answers[asked.pop("do")](**asked))
        except RegionMarkerError as error:
            say({"error": str(error), "exit_code": error.exit_code})
    ray.shutdown()


def say(answer: dict) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
