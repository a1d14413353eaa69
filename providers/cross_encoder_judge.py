"""A judge on this machine: a cross-encoder of the sentence-transformers library, through the extra of that name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from coherence.core.errors import JudgeError
from coherence.providers.clip import head_and_tail
from coherence.providers.sentence_transformer import load_model

MAX_CHARS = 8_000
"""Of longer evidence only head and tail are handed to the model."""


class CrossEncoderJudge:
    """A model that reads evidence and claim together, loaded on first use.

    A model of natural language inference gives the probability that the evidence entails the claim; one with a single
    output gives that output, which must be a probability or the log odds of one.

    Parameters
    ----------
    name_or_path : str
        A local folder, or a model name; loading a name that is not cached downloads it, as you asked.
    device : str, optional
        ``"cpu"``, ``"cuda"``, …; default: the library's choice.
    label : str or int, optional
        The output that stands for "the claim is so", by its name or its place. Default: the one whose name begins with
        ``entail``, or the only one.

    Raises
    ------
    MissingExtraError
        On first use, if the library is not installed; the message holds the install line.
    """

    def __init__(self, name_or_path: str, device: str | None = None, *, label: str | int | None = None) -> None:
        if not isinstance(name_or_path, str) or not name_or_path:
            raise TypeError(f"name_or_path must be a non-empty str, not {name_or_path!r}")
        self.name_or_path = name_or_path
        self.device = device
        self.label = label
        self._lock = Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        """Name or path of the model."""
        return self.name_or_path

    def judge(self, question: str, evidence: Sequence[str]) -> float:
        """Return the probability, in [0, 1], that the evidence makes the question's claim so.

        Raises
        ------
        JudgeError
            If the model has several outputs and none of the wanted name, or gives no number.
        """
        model = self._load()
        pair = (head_and_tail("\n".join(evidence), MAX_CHARS), question)
        with self._lock:
            made = model.predict([pair], activation_fn=_same, show_progress_bar=False)
        logits = [float(value) for value in _flat(made[0])]
        if not logits or not all(map(math.isfinite, logits)):
            raise JudgeError(f"{self.name} gave {logits}, expected finite numbers")
        if len(logits) == 1:
            # exp() overflows from 710 on
            return 1.0 / (1.0 + math.exp(-max(min(logits[0], 500.0), -500.0)))
        # less the largest, for the same reason
        weights = [math.exp(value - max(logits)) for value in logits]
        return weights[self._place(model, len(logits))] / sum(weights)

    def _place(self, model: Any, count: int) -> int:
        names: Mapping[Any, Any] = getattr(getattr(model, "config", None), "id2label", None) or {}
        for place in range(count):
            name = str(names.get(place, names.get(str(place), ""))).casefold()
            wanted = name.startswith("entail") if self.label is None else self.label in (place, name, names.get(place))
            if wanted:
                return place
        raise JudgeError(f"{self.name} has the outputs {dict(names)}: pass label=, the one for a claim that is so")

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = load_model("CrossEncoder", self.name_or_path, self.device)
            return self._model


def _same(logits: Any) -> Any:
    """Return the outputs as they are: what becomes of them is decided here, whatever the model's file says."""
    return logits


def _flat(row: Any) -> Sequence[Any]:
    """Return the outputs of one pair as a sequence, though the library gives a lone one as a number."""
    return row.tolist() if getattr(row, "ndim", 0) else [row]
