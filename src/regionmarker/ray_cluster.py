"""Ray without its chatter: join a cluster, or start one on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

from regionmarker.errors import MissingExtraError, OutsideError

_TRIES = 3


@contextlib.contextmanager
def ray_cluster(address: str | None) -> Iterator[Any]:
    """Give Ray, joined to the cluster at ``address`` or started on this machine, and leave it when the block ends.

    A process that is in a cluster already stays in it.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    if address is None:
        start_ray(ray, include_dashboard=False)
    else:
        start_ray(ray, tries=1, address=address)
    try:
        yield ray
    finally:
        ray.shutdown()


def import_ray() -> Any:
    """Import Ray and its data sets with their bars and logs switched off, or say which extra brings them."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its C++ half writes to stderr on its own
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError.for_module("ray", "ray") from None
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return ray


def start_ray(ray: Any, *, tries: int = _TRIES, **options: Any) -> Any:
    """Start a cluster on this machine, or join the one at ``address``, with the options of ``ray.init``.

    There are several tries, because on a busy machine Ray's own half minute may not be enough.
    """
    options = {
        "address": "local",
        **options,
    }  # without it Ray joins what an earlier cluster's record names, dead or not
    for left in reversed(range(tries)):
        try:
            return ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # noqa: BLE001 - Ray raises plain exceptions here
            ray.shutdown()
            if not left:
                where = "this machine" if options["address"] == "local" else options["address"]
                raise OutsideError(f"cannot reach Ray at {where}: {first_line(error)}") from None
    raise AssertionError


def first_line(error: BaseException) -> str:
    r"""Return the part of another's message that fits our sentence.

    Examples
    --------
    >>> first_line(ValueError("no such node\n  at raylet"))
    'no such node'
    """
    return (str(error).splitlines() or [type(error).__name__])[0]
