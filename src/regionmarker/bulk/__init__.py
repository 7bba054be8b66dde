"""Bulk marking: files of vectors in, marked Parquet out, on one machine or on Ray.

Read in this order: :mod:`~regionmarker.bulk.storage` (where files are), :mod:`~regionmarker.bulk.formats` (what a shard
can be), :mod:`~regionmarker.bulk.job` (which shards, marked how), :mod:`~regionmarker.bulk.batch` (a batch),
:mod:`~regionmarker.bulk.shard` (a file), :mod:`~regionmarker.bulk.manifest` (what was done),
:mod:`~regionmarker.bulk.run` (the whole), :mod:`~regionmarker.bulk.ray_engine` (the same on a cluster).
"""
