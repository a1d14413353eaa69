"""Three agents that rely on one another: the trouble of one is felt by those who use its work."""

from coherence import Fleet

with Fleet(embedder=False) as fleet:
    researcher, planner, lead = (fleet.agent(name) for name in ("researcher", "planner", "lead"))
    fleet.add_edge("researcher", "planner", trust_weight=0.8)
    fleet.add_edge("planner", "lead", trust_weight=0.9, fixed=True)  # outcomes leave this one alone

    for attempt in range(7):
        researcher.tool_call("search", {"query": f"launch date {attempt}"})
        researcher.tool_result("503 service unavailable", error=True)

    for status in fleet.status():
        print(f"{status.agent:<11} {status.decision:<9} pressure {status.pressure:.2f}  {status.mode}")
    print("lead:", lead.decide().findings[0].why)

    planner.outcome(False, text="the plan had no date in it")
    print("trust in the researcher:", round(fleet.trust.edge("researcher", "planner").weight, 3))
