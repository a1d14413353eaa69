"""A metric of another package."""

from coherence.core.readings import MetricInput


class Brevity:
    """Share of recent messages of at most three words. Range [0, 1], direct: 1 = all are brief."""

    name = "acme_brevity"
    inverted = False
    reads = ("context",)

    def compute(self, data: MetricInput) -> float | None:
        """Return the share, ``None`` without messages."""
        texts = data.context_texts
        return sum(len(text.split()) <= 3 for text in texts) / len(texts) if texts else None
