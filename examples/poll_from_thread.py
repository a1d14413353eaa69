"""A synchronous agent: a clock measures on a thread of its own, the agent polls the ring buffer before it acts."""

import time

from coherence import CoherenceSensor, IntervalClock
from coherence.providers import StaticState

agent = StaticState(goals=["Summarise the quarterly report"])
sensor = CoherenceSensor(agent)
seen = 0
with IntervalClock(seconds=0.05).thread(sensor) as clock:
    for said in ("Reading the quarterly report.", "Revenue grew by twelve percent.", "What is my horoscope today?"):
        agent.context.append(said)
        time.sleep(0.3)  # the agent works
        for reading in sensor.since(seen):  # every reading since the last look, oldest first
            seen = reading.tick_seq
        latest = sensor.latest
        if latest is not None and latest.coverage > 0:
            print(f"{latest.band:6}  {latest.coherence_index:.2f}  before: {said}")
print(f"{clock.ticks} ticks, {clock.missed} missed")
