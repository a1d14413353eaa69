"""Many processes and SIGKILL: the files are the old ones or the new ones, never torn, never with a wrong vector."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from coherence.lessons.index.base import Mark
from coherence.lessons.index.coded import CodedIndex

D = 12

WORLD = """
import os, random, signal, sys, time
import filelock  # or most of a child's life would go into importing it
from pathlib import Path
import numpy as np
from coherence.lessons.index.base import Mark
from coherence.lessons.index.coded import CodedIndex
D, folder = 12, Path(sys.argv[1])

def vectors(ids):
    return np.array([np.random.default_rng(id).standard_normal(D) for id in ids]).reshape(-1, D)

def oldest(newest):
    return max(newest - 59, 1)

def step_on(step, last):
    # The database of this world: number n adds lesson n and removes lesson n - 60.
    index = CodedIndex(D)
    mark = index.load(folder, "f") or Mark("f", D)
    while mark.lesson < last:
        until = min(mark.lesson + step, last)
        index.add([*range(mark.lesson + 1, until + 1)], vectors(range(mark.lesson + 1, until + 1)))
        index.remove(range(oldest(mark.removal), oldest(until)))
        mark = Mark("f", D, until, until)
        if not index.save(folder, mark):  # another process is further
            mark = index.load(folder, "f")

def check():
    # The files hold what their mark says, each lesson with its own vector; gives how far they are.
    index = CodedIndex(D)
    mark = index.load(folder, "f")
    if mark is None:
        return 0
    expected = range(oldest(mark.lesson), mark.lesson + 1)
    assert mark.lesson == mark.removal
    assert index.stats().count == len(expected), (index.stats(), mark)
    for id, vector in zip(expected, vectors(expected)):
        ids, cosines = index.search(vector, 1)
        assert ids[0] == id and cosines[0] > 0.999, (id, ids, cosines)
    return mark.lesson
"""

KILLER = """
rng, reached, kills = random.Random(3), 0, 0
while kills < 20 or reached <= 100:  # a busy machine may kill many before they have begun
    kills += 1
    child = os.fork()
    if child == 0:
        step_on(3, 10**6)
    time.sleep(rng.uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    now = check()
    assert now >= reached, (now, reached)
    reached = now
print(reached)
"""


def run(program: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORLD + program, str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> int:
    """Return the number that a process has printed, once it has ended well."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return int(output)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_index_processes_whoever_is_killed_while_saving_leaves_a_whole_index(tmp_path: Path) -> None:
    assert result(run(KILLER, tmp_path)) > 100


@pytest.mark.slow
def test_index_processes_several_processes_save_to_the_same_files(tmp_path: Path) -> None:
    program = "step_on(int(sys.argv[2]), int(sys.argv[3])); print(check())"
    children = [run(program, tmp_path, str(step), "600") for step in (1, 3, 7)]
    assert result(run("reached = 0\nwhile reached < 300: reached = check()\nprint(reached)", tmp_path)) >= 300
    for child in children:
        assert result(child) == 600


def vector(id: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(id).standard_normal(D)


def test_threads_add_remove_and_search_beside_each_other(tmp_path: Path) -> None:
    index = CodedIndex(D)
    wrong: list[object] = []

    def work(first: int) -> None:
        try:
            for id in range(first, first + 300):
                index.add([id], [vector(id)])
                if index.search(vector(id), 1)[0][0] != id:
                    wrong.append(id)
                if id % 3 == 0:
                    index.remove([id])
                if id % 50 == 0:
                    index.save(tmp_path, Mark("f", D, id))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert index.stats().count == 4 * 200  # of 300 ids in a row, 100 can be divided by 3
