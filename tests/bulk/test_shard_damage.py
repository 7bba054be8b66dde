"""A damaged shard is refused by name and takes nothing with it, also where pyarrow ends the process over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.damage import CRASHED, flips, footer_bytes, make_crash
from tests.support.shards import ROWS, shard_table, temporary_files, vectors

from regionmarker.bulk.formats import look_at_shard, open_shard, reading
from regionmarker.bulk.job import Job, JobPaths
from regionmarker.bulk.manifest import Entry
from regionmarker.bulk.shard import ShardMarker
from regionmarker.errors import InputError
from regionmarker.progress import stderr_console


def test_a_footer_that_kills_pyarrow_takes_only_its_shard(mark, shards, tmp_path):
    source = shards(4)
    make_crash(source / "part-002.parquet")
    outcome = mark(source, tmp_path / "out")
    (refused,) = outcome.refused
    assert (refused.source, CRASHED in refused.reason) == ("part-002.parquet", True)
    assert refused.reason.startswith("cannot read part-002.parquet: ")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == [
        "part-000.parquet", "part-001.parquet", "part-003.parquet",
    ]  # fmt: skip
    assert outcome.manifest["totals"]["rows"] == 3 * ROWS
    assert temporary_files(tmp_path / "out") == []


def test_the_same_footer_kills_a_process_that_opens_it_itself(shards, tmp_path):
    path = shards(1) / "part-000.parquet"
    make_crash(path)
    look = (
        "from regionmarker.bulk.formats import look_at_shard\n"
        f"look_at_shard({str(path)!r}, 'parquet', 'embedding', 0, False)"
    )
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, check=False).returncode < 0


def test_the_command_names_the_shard_and_has_an_exit_code(shards, tmp_path, bulk_keys):
    source = shards(3)
    make_crash(source / "part-001.parquet")
    command = ["mark", "--json", "--key", bulk_keys / "key.rmkey", source, tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-m", "regionmarker", *map(str, command)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "")
    facts = json.loads(done.stdout)
    assert list(facts["refused_shards"]) == ["part-001.parquet"]
    assert (facts["shards"], facts["rows"]) == (3, 2 * ROWS)


def test_300_flipped_footers_and_300_flipped_shards_in_one_job(mark, tmp_path, embeddings):
    """Each is marked or refused by name; what is marked beside them is not touched."""
    source = tmp_path / "in"
    source.mkdir()
    pq.write_table(shard_table(embeddings, 0), source / "whole.parquet")
    content = (source / "whole.parquet").read_bytes()
    for number, damaged in enumerate(flips(content, 300, last=footer_bytes(content))):
        (source / f"footer-{number:03d}.parquet").write_bytes(damaged)
    for number, damaged in enumerate(flips(content, 300, seed=1)):
        (source / f"any-{number:03d}.parquet").write_bytes(damaged)
    outcome = mark(source, tmp_path / "out", on_bad_row="set-aside")
    assert (tmp_path / "out" / "whole.parquet").exists()
    assert len(outcome.manifest["shards"]) == 601
    assert 100 < len(outcome.refused) < 601
    for entry in outcome.refused:
        assert entry.source in entry.reason or "would both" in entry.reason or "row" in entry.reason


@pytest.mark.parametrize("stream", [False, True])
def test_200_flipped_arrow_files_in_one_job(mark, tmp_path, embeddings, stream):
    source = tmp_path / "in"
    source.mkdir()
    table = shard_table(embeddings, 0).append_column("tag", pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode())
    table = table.set_column(1, "embedding", vectors(embeddings[:ROWS], pa.list_(pa.float32())))
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(source / "whole.arrow", table.schema) as writer:
        writer.write_table(table)
    content = (source / "whole.arrow").read_bytes()
    for number, damaged in enumerate([*flips(content[:1500], 100), *flips(content[-900:], 100)]):
        whole = damaged + content[1500:] if number < 100 else content[:-900] + damaged
        (source / f"flip-{number:03d}.arrow").write_bytes(whole)
    outcome = mark(source, tmp_path / "out", on_bad_row="set-aside")
    assert (tmp_path / "out" / "whole.parquet").exists()
    assert outcome.refused


def test_an_offset_that_points_outside_is_refused(mark, tmp_path, embeddings):
    """Arrow files are mapped and not checked on reading: the offset would be followed."""
    column = vectors(embeddings[:ROWS], pa.list_(pa.float32()))
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32).copy()
    offsets[10] = 1 << 30
    values = column.values.buffers()[1]
    forged = pa.Array.from_buffers(
        column.type, ROWS, [None, pa.py_buffer(offsets)],
        children=[pa.Array.from_buffers(pa.float32(), len(column.values), [None, values])],
    )  # fmt: skip
    table = pa.table({"embedding": forged})
    source = tmp_path / "in"
    source.mkdir()
    with pa.ipc.new_file(source / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    (refused,) = mark(source, tmp_path / "out").refused
    assert refused.reason.startswith("cannot read a.arrow: ")


def test_a_text_that_is_not_utf8_is_handed_on_as_it_came(mark, tmp_path, embeddings):
    texts = pa.array([b"\xff\xfe"] * ROWS, pa.binary()).view(pa.string())
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": texts, "embedding": vectors(embeddings[:ROWS])}), source)
    assert mark(source, tmp_path / "out.parquet").whole
    assert pq.read_table(tmp_path / "out.parquet").column("text").cast(pa.binary()).to_pylist() == [b"\xff\xfe"] * ROWS


def test_a_shard_over_which_a_run_died_is_read_whole_in_the_child_first(
    mark, shards, tmp_path, bulk_marker, monkeypatch
):
    """Its rows cannot be trusted to this process any more; the note goes when it is done."""
    source, target = shards(2), tmp_path / "out"
    asked = []
    monkeypatch.setattr(
        "regionmarker.bulk.shard.first_look", lambda *_, whole, path, **__: asked.append((path[-16:], whole))
    )
    paths = JobPaths.of(Job(str(source), str(target)))
    _, second = paths.shards()
    paths.target.note(paths.begun(second))
    assert mark(source, target, workers=1).whole
    assert asked == [("part-000.parquet", False), ("part-001.parquet", True)]
    assert list((target / "_regionmarker").glob("begun*")) == []


def test_the_note_is_there_while_a_shard_is_read_and_a_death_leaves_it(shards, tmp_path, bulk_marker, monkeypatch):
    source, target = shards(1), tmp_path / "out"
    job = Job(str(source), str(target))
    paths = JobPaths.of(job)
    (shard,) = paths.shards()
    found = []

    def refuse(*_arguments):
        found.append(paths.target.info(paths.begun(shard)) is not None)
        raise InputError("row 3 is not to be had")

    monkeypatch.setattr(ShardMarker, "_mark", refuse)
    entry = ShardMarker(job, paths, bulk_marker).mark(shard)
    assert (found, entry.reason) == ([True], "row 3 is not to be had")
    assert paths.target.info(paths.begun(shard)) is None  # refused is not died


def test_a_shard_whose_name_is_no_text_is_refused_and_shown(mark, shards, tmp_path, capsys):
    """Arrow opens no such name; found by fuzzing: the manifest could not be written either."""
    source = shards(2)
    name = os.fsdecode(b"\xff-\x1b.parquet")
    try:
        (source / name).write_bytes((source / "part-000.parquet").read_bytes())
    except OSError:
        pytest.skip("this file system takes only names that are UTF-8")
    outcome = mark(source, tmp_path / "out")
    assert [entry.source for entry in outcome.refused] == [name]
    assert mark(source, tmp_path / "out").already_done == 2
    stderr_console().print(f"refused: {outcome.refused[0].source}")
    assert capsys.readouterr().err == "refused: \\udcff-\\x1b.parquet\n"


@pytest.mark.parametrize(
    "change", [{"rows": "many"}, {"rows": -1}, {"rows": True}, {"set_aside": ["x"]}, {"reason": 7}, {"shard": None}]
)
def test_an_entry_that_is_none_counts_as_not_there(change):
    entry = Entry("a.parquet", "a.npy", 0, "done", None, 1, "1", "ab", 1, "cd", 1, 0, (), None)
    assert Entry.from_json(entry.to_json()) == entry
    assert Entry.from_json(json.dumps({**json.loads(entry.to_json()), **change}).encode()) is None


@pytest.mark.parametrize("content", [b'{"key": 7, "settings": {}}', b'{"key": {}, "settings": "x"}', b"[" * 100_000])
def test_a_job_file_that_is_none_is_a_sentence(mark, shards, tmp_path, content):
    """Found by fuzzing: settings that are a text."""
    source = shards(1)
    mark(source, tmp_path / "out")
    (tmp_path / "out" / "_regionmarker" / "job.json").write_bytes(content)
    with pytest.raises(InputError, match=r"job\.json is damaged: use --force"):
        mark(source, tmp_path / "out")


def test_a_panic_of_a_library_in_rust_is_a_sentence(tmp_path):
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(InputError, match=r"^cannot read a\.lance: called unwrap$"), reading(Path("a.lance")):
        raise panic("called unwrap\nat line 3")
    with pytest.raises(KeyboardInterrupt), reading(Path("a.lance")):
        raise KeyboardInterrupt


def test_a_whole_look_reads_the_rows(tmp_path, embeddings):
    path = tmp_path / "a.parquet"
    pq.write_table(shard_table(embeddings, 0), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[60:2000] = bytes(1940)
    path.write_bytes(content)
    look_at_shard(str(path), "parquet", "embedding", 0, whole=False)
    with pytest.raises(InputError, match="cannot read"):
        look_at_shard(str(path), "parquet", "embedding", 0, whole=True)
    with open_shard(path, "parquet", "embedding") as source, pytest.raises(InputError, match="cannot read"):
        list(source.batches(10))
