"""A loop written for the classic event-driven regulator; only its import line was changed.

The model and the tools are stand-ins; everything else is real.
"""

from coherence.compat import LLMEvent, Regulator

TURNS = [
    ("Refactor fetch_user to be async", "def fetch_user is async now: async def fetch_user(id)", 0.9),
    ("Write the weekly report as a table", "The onions are peeled; let the soup simmer for an hour.", 0.6),
    ("Write the weekly report as a table", "The weekly report as a table follows.", 0.4),
    ("Write the weekly report as a table", "Here is the weekly report, a table.", 0.3),
]

regulator = Regulator.for_user("ada").with_cost_cap(2_000)
for request, answer, quality in TURNS:
    regulator.on_event(LLMEvent.turn_start(request))
    prompt = regulator.inject_corrections(request)
    regulator.on_event(LLMEvent.turn_complete(answer))
    regulator.on_event(LLMEvent.cost(tokens_in=len(prompt), tokens_out=600, wallclock_ms=900))
    regulator.on_event(LLMEvent.quality_feedback(quality))
    decision = regulator.decide()
    why = decision.reason.kind if decision.reason else ""
    print(f"{decision.kind:<18} {why}".rstrip())
    if decision.is_circuit_break():
        break

again = Regulator.from_json(regulator.export_json())
print(f"{again.user_id()}: {again.total_tokens_out()} of {again.cost_cap_tokens()} tokens")
for _ in range(5):
    again.on_event(LLMEvent.tool_call("search", '{"query": "report"}'))
print(again.tool_counts_by_name(), again.decide().kind)
