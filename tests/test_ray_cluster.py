"""One way to start Ray: a few tries on this machine, one for a cluster elsewhere, and one sentence where it fails."""

from __future__ import annotations

import pytest

from regionmarker.errors import OutsideError
from regionmarker.ray_cluster import start_ray


class Broken:
    """Ray on a machine where it does not start."""

    def __init__(self, failures: int) -> None:
        self.failures, self.started, self.ended = failures, [], 0

    def init(self, **options):
        self.started.append(options)
        if len(self.started) <= self.failures:
            raise RuntimeError("the raylet did not start\nin time")
        return "context"

    def shutdown(self) -> None:
        self.ended += 1


def test_a_slow_start_is_tried_again():
    ray = Broken(failures=2)
    assert start_ray(ray, num_cpus=2) == "context"
    assert (len(ray.started), ray.ended) == (3, 2)
    assert all(options["log_to_driver"] is False and options["num_cpus"] == 2 for options in ray.started)


@pytest.mark.parametrize(
    ("options", "where", "tries"), [({}, "this machine", 3), ({"tries": 1, "address": "head:6379"}, "head:6379", 1)]
)
def test_a_cluster_that_cannot_be_reached_is_one_sentence(options, where, tries):
    ray = Broken(failures=9)
    with pytest.raises(OutsideError, match=f"^cannot reach Ray at {where}: the raylet did not start$"):
        start_ray(ray, **options)
    assert len(ray.started) == tries
