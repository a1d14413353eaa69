"""Own metrics: a plain function, a class that explains itself, and a scalar without any text."""

from dataclasses import dataclass

import coherence
from coherence import CoherenceSensor, Evidence, MetricInput
from coherence.metrics import GoalDrift
from coherence.providers import StaticState


@coherence.metric("shouting", inverted=True)
def shouting(data: MetricInput) -> float | None:
    """Share of messages in capitals. Range [0, 1], high is bad."""
    texts = data.context_texts
    return sum(text.isupper() for text in texts) / len(texts) if texts else None


@dataclass(frozen=True)
class Repetition:
    """Largest cosine between the newest message and an earlier one. Range [0, 1], high is bad."""

    name = "repetition"
    inverted = True

    def compute(self, data: MetricInput) -> float | None:
        cosines = data.cosines("context", "context")
        return float(cosines[-1, :-1].max().clip(0, 1)) if len(cosines) > 1 else None

    def explain(self, data: MetricInput) -> Evidence:
        earlier = int(data.cosines("context", "context")[-1, :-1].argmax())
        texts = (data.context_texts[-1], data.context_texts[earlier])
        return Evidence("say the same", "context", (len(data.context) - 1, earlier), texts)


@coherence.metric("queue_length", inverted=True)
async def queue_length() -> float:
    """Ask your own host: no texts, may be async."""
    return min(3 / 20, 1.0)


state = StaticState(goals=["fix the login"], context=["The login test fails.", "THE LOGIN TEST STILL FAILS."])
sensor = CoherenceSensor(state, metrics=[GoalDrift(), "shouting", Repetition()], scalar_metrics=["queue_length"])
print(sensor.measure_sync().explain())
