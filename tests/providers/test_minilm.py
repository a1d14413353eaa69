from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import numpy.typing as npt
import pytest

from coherence.core.errors import ModelError
from coherence.providers import MiniLMEmbedder, minilm
from coherence.providers.minilm import MAX_TOKENS, MODELS, has_vnni

DATA = Path(__file__).parents[1] / "data"
SENTENCES: list[str] = json.loads((DATA / "minilm_sentences.json").read_text(encoding="utf-8"))

EMBEDDER = MiniLMEmbedder()


def cosine(left: str, right: str) -> float:
    return float(EMBEDDER.embed(left) @ EMBEDDER.embed(right))


def same(left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]) -> bool:
    return left.tobytes() == right.tobytes()


def test_has_vnni_the_vectors_are_those_of_the_original_model(record_property: Callable[[str, object], None]) -> None:
    reference = np.load(DATA / "minilm_fp32.npy").astype(np.float64)
    reference /= np.linalg.norm(reference, axis=1, keepdims=True)
    ours = EMBEDDER.embed_batch(SENTENCES).astype(np.float64)
    assert reference.shape == ours.shape == (50, 384)
    cosines = np.sum(reference * ours, axis=1)
    worst = int(cosines.argmin())
    record_property("lowest cosine", float(cosines[worst]))
    assert cosines[worst] >= (0.98 if has_vnni() else 0.95), SENTENCES[worst]


def test_minilm_the_files_are_the_ones_that_the_notice_names() -> None:
    notice = (MODELS / "NOTICE.txt").read_text(encoding="utf-8")
    named = {name: digest for digest, name in re.findall(r"^  ([0-9a-f]{64})  (\S+)$", notice, re.MULTILINE)}
    assert {minilm.MODEL, minilm.TOKENIZER} <= named.keys()
    for name in (minilm.MODEL, minilm.TOKENIZER):
        assert hashlib.sha256((MODELS / name).read_bytes()).hexdigest() == named[name], name


def test_minilm_a_paraphrase_is_nearer_than_an_unrelated_text() -> None:
    question = "How can I get my money back?"
    assert cosine(question, "I would like a refund.") > cosine(question, "The moon orbits the Earth.") + 0.3


@pytest.mark.parametrize("mark", ["[SEP]", "[CLS]", "[PAD]", "[MASK]", "[UNK]"])
def test_minilm_the_name_of_a_control_token_in_a_text_is_text(mark: str) -> None:
    _, tokenizer = EMBEDDER._load()
    ids = EMBEDDER._ids(f"before {mark} after", tokenizer)
    assert (ids[0], ids[-1]) == (tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"))
    control = {tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]")}
    assert not control & set(ids[1:-1])


def test_minilm_of_a_long_text_head_and_tail_matter_and_the_middle_does_not() -> None:
    words = ["alpha"] * 200 + ["middle"] * 200 + ["omega"] * 200  # one token each, 3,600 characters
    _, tokenizer = EMBEDDER._load()
    half = (MAX_TOKENS - 2) // 2
    inner = EMBEDDER._ids(" ".join(words), tokenizer)[1:-1]
    assert inner == [tokenizer.token_to_id("alpha")] * half + [tokenizer.token_to_id("omega")] * half
    head, tail = "the flight to Oslo " * 150, "the refund of the hotel " * 120  # 2,850 and 2,880 characters
    long = EMBEDDER.embed(f"{head} middle {tail}")
    assert same(long, EMBEDDER.embed(f"{head} {'something else entirely ' * 400_000} {tail}"))  # of ten megabytes
    assert not same(long, EMBEDDER.embed(f"Cooking pasta. {head} middle {tail}"))
    assert not same(long, EMBEDDER.embed(f"{head} middle {tail} Cooking pasta."))


@pytest.mark.parametrize("text", ["", " ", "\ud800", "a \udfff b", "\x00", "🙂" * 3000])
def test_minilm_hostile_texts_have_a_vector_of_unit_length(text: str) -> None:
    assert np.linalg.norm(EMBEDDER.embed(text)) == pytest.approx(1.0, abs=1e-5)


def test_embed_batch_a_vector_does_not_depend_on_the_other_texts_of_its_batch() -> None:
    texts = [*SENTENCES[:8], "short", "long " * 400]
    batch = EMBEDDER.embed_batch(texts)
    reverse = EMBEDDER.embed_batch(texts[::-1])[::-1]
    for text, row, other in zip(texts, batch, reverse, strict=True):
        alone = EMBEDDER.embed(text)
        assert same(row, alone)
        assert same(other, alone)


def test_mini_lm_embedder_two_threads_that_start_with_a_fresh_embedder_get_the_same_vectors() -> None:
    fresh, together = MiniLMEmbedder(), Barrier(2)
    assert fresh._loaded is None

    def embed(texts: list[str]) -> list[bytes]:
        together.wait()
        return [fresh.embed(text).tobytes() for text in texts]

    texts = SENTENCES[:20]
    with ThreadPoolExecutor(2) as pool:
        forth, back = pool.submit(embed, texts), pool.submit(embed, texts[::-1])
        expected = [EMBEDDER.embed(text).tobytes() for text in texts]
        assert forth.result() == expected
        assert back.result() == expected[::-1]


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "expected"),
    [
        ("aarch64", "", True),
        ("arm64", "", True),
        ("x86_64", "flags : fpu avx2 avx512_vnni", True),
        ("AMD64", "flags : fpu avx_vnni", True),
        ("x86_64", "flags : fpu avx2 avx512f", False),
        ("x86_64", None, False),
    ],
)
def test_has_vnni_vnni_is_told_by_machine_and_flags(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str, cpuinfo: str | None, expected: bool
) -> None:
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(minilm, "Path", lambda path: file)
    assert has_vnni() is expected


def test_mini_lm_embedder_without_vnni_the_slower_exact_sums_give_nearly_the_same_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minilm, "has_vnni", lambda: False)
    careful = MiniLMEmbedder()
    for sentence in SENTENCES[:10]:
        assert float(careful.embed(sentence) @ EMBEDDER.embed(sentence)) > 0.95


@pytest.mark.parametrize("name", [minilm.MODEL, minilm.TOKENIZER])
def test_minilm_files_that_are_not_the_shipped_ones_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (minilm.MODEL, minilm.TOKENIZER):
        shutil.copy(MODELS / each, tmp_path / each)
    monkeypatch.setattr(minilm, "MODELS", tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-1] + b"\0")
    with pytest.raises(ModelError, match=rf"{name}: its SHA-256 is [0-9a-f]{{64}}, not .* reinstall: pip install"):
        minilm.MiniLMEmbedder().embed("hello")
    (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=rf"{name}: it cannot be read"):
        minilm.MiniLMEmbedder().embed("hello")
