"""Bulk marking: speed and memory (``studies.bulk.speed``); kills change nothing (``studies.bulk.kill``)."""
