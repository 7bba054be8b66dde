"""No text is embedded twice: not in a list, not in a later run, not after kill -9, not by two processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.encoders import CachedEncoder, cache, default_cache_path, load_encoder
from regionmarker.errors import InputError

TEXTS = [f"text {number}" for number in range(30)]

# An encoder that writes down what it is asked, and takes its time: each call is a line of the log.
WORKER = """
import sys, time, numpy as np
from regionmarker.encoders import CachedEncoder
class Slow:
    name = "slow"
    def encode(self, texts):
        with open(sys.argv[2], "a") as log:
            log.write("|".join(texts) + "\\n")
        time.sleep(float(sys.argv[3]))
        return np.array([[float(text), 1.0, 2.0] for text in texts])
numbers = list(range(int(sys.argv[4]))) * 2
rows = CachedEncoder(Slow(), sys.argv[1], batch_size=5).encode([str(number) for number in numbers])
assert np.allclose(rows[:, 0] / rows[:, 1], numbers, atol=1e-3)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def worker(path: Path, log: Path, pause: float, texts: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WORKER, str(path), str(log), str(pause), str(texts)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def asked(log: Path) -> Counter[str]:
    return Counter(text for line in log.read_text().splitlines() for text in line.split("|"))


def test_each_distinct_text_is_embedded_once(hashes: Any, path: Path) -> None:
    encoder = CachedEncoder(hashes, path)
    encoder.encode(["a", "b", "a", "a"])
    encoder.encode(["c", "b"])
    encoder.encode(["a", "b", "c"])
    assert hashes.asked == [["a", "b"], ["c"]]


def test_a_text_that_comes_again_much_later_in_the_list_is_embedded_once(
    hashes: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_CHUNK", 7)
    rows = CachedEncoder(hashes, path).encode(TEXTS * 3)
    assert sorted(text for batch in hashes.asked for text in batch) == sorted(TEXTS)
    assert np.array_equal(rows, load_encoder(hashes).encode(TEXTS * 3))


def test_vectors_come_back_bit_for_bit(hashes: Any, path: Path) -> None:
    plain = load_encoder(hashes).encode(TEXTS)
    fresh = CachedEncoder(hashes, path).encode(TEXTS)
    stored = CachedEncoder(hashes, path).encode(TEXTS)
    assert plain.tobytes() == fresh.tobytes() == stored.tobytes()


def test_texts_that_differ_in_anything_are_different_texts(hashes: Any, path: Path) -> None:
    texts = ["a", "A", "a ", "a\n", "é", "e\u0301"]
    CachedEncoder(hashes, path).encode(texts)
    assert hashes.asked == [texts]


def test_batches_are_those_of_the_encoder_unless_told(hashes: Any, path: Path, tmp_path: Path) -> None:
    hashes.batch_size = 8
    CachedEncoder(hashes, path).encode(TEXTS)
    assert [len(batch) for batch in hashes.asked] == [8, 8, 8, 6]
    hashes.asked.clear()
    CachedEncoder(hashes, tmp_path / "other.sqlite", batch_size=4).encode(TEXTS)
    assert max(len(batch) for batch in hashes.asked) == 4


def test_the_encoder_and_its_revision_are_part_of_the_key(hashes: Any, path: Path) -> None:
    CachedEncoder(hashes, path).encode(["a"])
    hashes.name = "other"
    CachedEncoder(hashes, path).encode(["a"])
    hashes.revision = "2"
    CachedEncoder(hashes, path).encode(["a"])
    CachedEncoder(hashes, path).encode(["a"])
    assert hashes.asked == [["a"]] * 3


def test_no_texts_get_the_width_from_the_file(hashes: Any, path: Path) -> None:
    assert CachedEncoder(hashes, path).encode([]).shape == (0, 0)
    CachedEncoder(hashes, path).encode(["a"])
    assert CachedEncoder(hashes, path).encode([]).shape == (0, 24)
    assert CachedEncoder(load_encoder("wordllama"), path).encode([]).shape == (0, 256)


def test_what_arrived_before_a_failure_is_kept(hashes: Any, path: Path) -> None:
    class Failing:
        name = "hashes"
        batch_size = 4

        def encode(self, texts: list[str]) -> Any:
            if "text 9" in texts:
                raise ConnectionError("gone")
            return hashes.encode(texts)

    with pytest.raises(ConnectionError, match="gone"):
        CachedEncoder(Failing(), path).encode(TEXTS)
    hashes.asked.clear()
    CachedEncoder(hashes, path).encode(TEXTS)
    assert [text for batch in hashes.asked for text in batch] == TEXTS[8:]


def test_an_encoder_of_no_certain_name_gets_no_cache(hashes: Any, path: Path) -> None:
    class Nameless:
        def encode(self, texts: list[str]) -> Any:
            return hashes.encode(texts)

    with pytest.raises(InputError, match="a cache needs a name that tells this Nameless from others"):
        CachedEncoder(Nameless(), path)
    assert load_encoder(Nameless(), name="mine", cache=path).name == "mine"
    with pytest.raises(InputError, match="has a cache already"):
        CachedEncoder(CachedEncoder(hashes, path), path)
    with pytest.raises(InputError, match="batch_size must be at least 1"):
        CachedEncoder(hashes, path, batch_size=0)


def test_the_file_holds_no_text(hashes: Any, path: Path) -> None:
    CachedEncoder(hashes, path).encode(["the patient Ann Miller"])
    assert b"Ann Miller" not in b"".join(file.read_bytes() for file in path.parent.glob("cache.sqlite*"))


def test_kill_9_loses_at_most_the_running_batch(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(3):
        before = len(log.read_text().splitlines()) if log.exists() else 0
        process = worker(path, log, 0.05, 60)
        deadline = time.monotonic() + 20
        while (len(log.read_text().splitlines()) if log.exists() else 0) < before + 3:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    last = worker(path, log, 0.0, 60)
    assert last.communicate()[1] == b""
    assert last.returncode == 0
    counts = asked(log)
    assert len(counts) == 60
    assert sum(counts.values()) - 60 <= 3 * 5  # three kills, batches of five
    again = worker(path, log, 0.0, 60)
    again.communicate()
    assert asked(log) == counts


def test_processes_share_one_file(path: Path, tmp_path: Path) -> None:
    logs = [tmp_path / f"log {number}" for number in range(6)]
    processes = [worker(path, log, 0.002, 200) for log in logs]  # all of them make the file at once
    for process in processes:
        assert process.communicate()[1] == b""
        assert process.returncode == 0
    total = sum((asked(log) for log in logs if log.exists()), Counter())
    assert len(total) == 200


def test_threads_share_one_encoder(hashes: Any, path: Path) -> None:
    encoder = CachedEncoder(hashes, path)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: encoder.encode(TEXTS), range(16)))
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


def test_memory_beside_the_answer_does_not_grow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_CHUNK", 256)

    class Wide:
        name = "wide"

        def encode(self, texts: list[str]) -> Any:
            return np.ones((len(texts), 256), dtype=np.float32)

    def beside(texts: list[str]) -> int:
        tracemalloc.start()
        answer = CachedEncoder(Wide(), path).encode(texts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - answer.nbytes

    few, many = [f"few {number}" for number in range(1000)], [f"many {number}" for number in range(4000)]
    beside(["what is allocated only once"])
    assert beside(many) - beside(few) < 1 << 18  # embedded
    assert beside(many) - beside(few) < 1 << 18  # read


def test_progress_is_drawn_on_stderr_when_asked(hashes: Any, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    CachedEncoder(hashes, path).encode(TEXTS)
    assert capfd.readouterr() == ("", "")
    CachedEncoder(hashes, path, progress=True).encode([*TEXTS, *TEXTS, "new"])
    out, err = capfd.readouterr()
    assert out == ""
    assert "embedding" in err
    assert "61/61" in err


def test_the_usual_place_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGIONMARKER_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_cache_path() == Path("/own/embeddings.sqlite")
    monkeypatch.setenv("REGIONMARKER_CACHE", "")
    assert default_cache_path() == Path("/xdg/regionmarker/embeddings.sqlite")
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert default_cache_path() == Path("/home/me/.cache/regionmarker/embeddings.sqlite")
    monkeypatch.setenv("REGIONMARKER_CACHE", "~/mine")
    assert default_cache_path() == Path("/home/me/mine/embeddings.sqlite")
