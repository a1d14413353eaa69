"""The first sensor: your agent's own state, one reading a turn."""

from coherence import CoherenceSensor, Tick


class MyAgent:
    """Your agent: anything with these four methods (plain or async) is a state provider."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.messages: list[str] = []
        self.notes = ["The user prefers direct flights."]

    def get_goals(self) -> list[str]:
        return [self.task]

    def get_recent_context(self) -> list[str]:
        return self.messages[-20:]

    def get_goal_relevant_memories(self) -> list[str]:
        return self.notes

    def get_all_memories(self) -> list[str]:
        return self.notes


agent = MyAgent("Book a direct flight from Berlin to Oslo")
sensor = CoherenceSensor(agent)
for turn, said in enumerate(
    [
        "Searching direct flights from Berlin to Oslo.",
        "Found two direct flights to Oslo on Friday.",
        "Let me first tidy up the kernel's build system.",
    ],
    start=1,
):
    agent.messages.append(said)
    print(sensor.measure_sync(Tick(turn)))
if sensor.latest is not None:
    print(sensor.latest.explain())
