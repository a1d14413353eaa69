"""Track an agent: success, duration and cost of every call, and what is known of the failed ones. Nothing is changed.

The agent is a stand-in; everything else is real. Run it twice: the second run goes on counting where the first stopped.
"""

from functools import partial

from coherence.guard import Guard, export_trail


def answer(ticket: int) -> dict[str, float | str]:
    """Stand in for an agent that is given a ticket."""
    if ticket % 7 == 0:
        raise TimeoutError(f"no answer to ticket {ticket} within 30 s")
    return {"text": f"ticket {ticket} is solved", "usd": 0.002 if ticket % 2 else 0.004}


with Guard(store="tracking.db", cost_of=lambda result: result["usd"]) as guard:
    for ticket in range(1, 31):
        try:
            out = guard.run(partial(answer, ticket), agent="support", task=f"ticket {ticket}")
        except TimeoutError:  # the agent's own exception, as without a guard
            continue
        if ticket == 1:
            print(f"{out.result['text']}: success {out.success}, in less than a second: {out.duration_s < 1}")

    status = guard.status("support")
    newest = status.newest
    print(f"{status.calls} calls, {status.failures} failed; phase {status.phase}, patch {status.patch}")
    print(f"the newest {newest.calls}: {newest.success_rate:.0%} succeeded, for {newest.cost:.3f} dollars")
    for trace in guard.traces("support", limit=30):
        if not trace.success:
            print(f"call {trace.seq:<3} {trace.task:<10} {trace.error}")

    assert guard.store is not None
    with open("support.jsonl", "wb") as file:  # for those who want plain files: one line of JSON a call
        guard.flush()
        print(export_trail(guard.store, "support", file), "lines in", file.name)
