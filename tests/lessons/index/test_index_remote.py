"""The index on a Qdrant server, tried in Qdrant's local mode; what all indices do is in ``test_index_contract.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import QdrantClient

from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.lessons.index.base import Mark
from coherence.lessons.index.remote import IndexServerError, QdrantIndex

UNUSED = Path("unused")


def test_qdrant_index_what_was_added_and_marked_is_there_for_the_next_process(tmp_path: Path) -> None:
    first = QdrantIndex(2, tmp_path)
    assert first.load(UNUSED, "f") is None
    first.add([1, 2], [[1.0, 0.0], [0.0, 1.0]])
    first.save(UNUSED, Mark("f", 2, lesson=2, removal=5))
    first.close()
    second = QdrantIndex(2, str(tmp_path))
    assert second.load(UNUSED, "f") == Mark("f", 2, lesson=2, removal=5)
    assert second.search([1.0, 0.1], 1)[0].tolist() == [1]
    assert (second.stats().tier, second.stats().count) == ("remote", 2)
    second.close()


def test_qdrant_index_each_embedder_has_a_collection_of_its_own() -> None:
    client = QdrantClient(location=":memory:")
    one, other = QdrantIndex(2, client, "one"), QdrantIndex(2, client, "other")
    one.add([1], [[1.0, 0.0]])
    other.add([1], [[0.0, 1.0]])
    one.save(UNUSED, Mark("one", 2, 1))
    other.save(UNUSED, Mark("other", 2, 7))
    assert one.search([1.0, 0.0], 1)[1].tolist() == pytest.approx([1.0])
    assert other.search([1.0, 0.0], 1)[1].tolist() == pytest.approx([0.0])
    assert one.load(UNUSED, "other") == Mark("other", 2, 7)
    assert one.search([1.0, 0.0], 1)[1].tolist() == pytest.approx([0.0])
    client.close()


def test_qdrant_index_many_go_in_several_requests() -> None:
    index = QdrantIndex(2, ":memory:")
    angles = np.linspace(0.0, 3.0, 2_500)
    index.add(range(2_500), np.stack([np.cos(angles), np.sin(angles)], axis=1))
    assert index.stats().count == 2_500
    index.remove(range(2_400))
    assert index.stats().count == 100
    assert index.search([np.cos(angles[2_450]), np.sin(angles[2_450])], 1)[0].tolist() == [2_450]
    index.close()


def test_qdrant_index_a_server_that_does_not_answer_is_a_clear_error() -> None:
    client = QdrantClient(location="http://127.0.0.1:9", check_compatibility=False)
    index = QdrantIndex(2, client)
    with pytest.raises(IndexServerError, match="the Qdrant server does not do what it was asked"):
        index.add([1], [[1.0, 0.0]])
    with pytest.raises(IndexServerError):
        index.search([1.0, 0.0], 1)
    assert issubclass(IndexServerError, CoherenceError)
    index.close()


def test_qdrant_index_something_else_than_a_place_is_refused() -> None:
    with pytest.raises(TypeError, match="where must be a URL, a folder, ':memory:' or a QdrantClient, not 5"):
        QdrantIndex(2, 5)


def test_qdrant_index_a_missing_package_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError, match=r'pip install "coherence-sensor\[qdrant\]"'):
        QdrantIndex(2, ":memory:")
