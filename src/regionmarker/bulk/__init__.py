"""Bulk marking: files of vectors in, marked Parquet out, on one machine or on Ray.

    job.py             what to mark and how, its shards, where it reads and writes
    storage.py         a folder of files, and the local one
    remote_storage.py  one behind an fsspec URL
    formats.py         what a shard can be
    run.py             the whole job: resumes, marks on this machine
    ray_engine.py      the same on a Ray cluster
    shard.py           one file
    pipeline.py        its steps, at the same time
    batch.py           its rows
    manifest.py        what was done
    text_file.py       texts in, a file of their marked vectors out

What a second run finds done stays done, and both engines write the same bytes.
"""
