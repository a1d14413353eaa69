"""A skill under guard: its arguments are recorded, a returned error is a failure, and a patch moves it to a mirror.

The service is a stand-in; everything else is real.
"""

import tempfile
from typing import Any

from coherence.guard import Bound, Bounds, Guard

settings: dict[str, Any] = {"host": "eu", "timeout_s": 5}


def fetch(host: str, city: str) -> dict[str, Any]:
    """Stand in for a service whose main host has lost its data on the Alps."""
    if host == "eu" and city in ("Davos", "Zermatt"):
        return {"status": "error", "error": f"no data on {city}", "tokens": 40}
    return {"status": "ok", "degrees": len(city), "tokens": 120}


class Settings:
    """Owns the skill's settings."""

    def get_config(self, *, agent_id: str) -> dict[str, Any]:
        return dict(settings)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        settings.update(config_patch)
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        settings.clear()
        settings.update(backup_config)


class Mirror:
    """Proposes the mirror where it is the same cities that fail again and again."""

    def analyze(self, *, traces: Any, **about: Any) -> dict[str, Any] | None:
        failed = [trace.arguments["args"][0] for trace in traces if not trace.success]
        return {"host": "mirror"} if len(set(failed)) < len(failed) else None


with (
    tempfile.TemporaryDirectory() as folder,
    Guard(
        store=f"{folder}/guard.db",
        strategy=Mirror(),
        config_adapter=Settings(),
        bounds=Bounds({"host": Bound(choices=("eu", "mirror"))}),
        is_success=lambda result: result["status"] == "ok",
        cost_of=lambda result: result["tokens"],
    ) as guard,
):

    @guard.wrap(agent="weather-skill")
    def weather(city: str, *, unit: str = "celsius") -> dict[str, Any]:
        """Tell the weather; the agent calls this by name with the arguments that a model wrote."""
        return fetch(settings["host"], city)

    for _ in range(120):
        for city in ("Bern", "Davos", "Basel", "Zermatt", "Lugano"):
            result = weather(city, unit="kelvin")

    first = guard.traces("weather-skill", limit=1000)[1]
    print(f"call {first.seq}: {first.task}{first.arguments}, success {first.success}, {first.cost:.0f} tokens")
    print("decided:", [past.kind for past in guard.history("weather-skill", limit=1000)][-1])
    print("newest 100 calls:", f"{guard.status('weather-skill').newest.success_rate:.0%} succeeded")
    print("in force:", settings, "now:", result)

assert settings == {"host": "mirror", "timeout_s": 5}
