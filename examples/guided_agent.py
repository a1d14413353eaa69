"""Guidance, questions before calls, and corrections, in an agent's own loop.

The agent is a stand-in that does what the script says; everything else is real. Firings are told or withheld at random
so that their effect can be measured; `coherence experiments --store guided.db` shows how that stands.
"""

from coherence import Monitor

SCRIPT = [
    ("Bash", {"command": "pytest -q"}, "ModuleNotFoundError: No module named 'yaml'", True),
    ("Bash", {"command": "pytest -q"}, "ModuleNotFoundError: No module named 'yaml'", True),
    ("Bash", {"command": "pytest -q"}, "ModuleNotFoundError: No module named 'yaml'", True),
    ("Read", {"path": "requirements.txt"}, "rich\nclick", False),
    ("Bash", {"command": "pip install pyyaml"}, "Successfully installed pyyaml", False),
    ("Bash", {"command": "pytest -q"}, "12 passed", False),
]

with Monitor(agent="builder", store="guided.db", embedder=False) as m:
    m.message("user", "Make the test suite pass. Do not touch the lock file.")
    for tool, arguments, output, failed in SCRIPT:
        answer = m.check(tool, arguments)
        if not answer:
            print("refused:", answer.message)
            continue
        call = m.tool_call(tool, arguments)
        m.tool_result(output, error=failed, call=call)
        decision = m.decide()
        told = ""
        if decision.guidance:  # false where it is withheld for comparison
            m.delivered(decision.guidance)  # after it has been put into the agent's next prompt
            told = decision.guidance.text
        print(f"{tool:<5} {decision.kind:<9} {told}")
    m.message("assistant", "All 12 tests pass. I also updated the lock file.")
    m.outcome(True)
    for finding in m.decide().findings:
        if finding.active:
            print(f"{finding.rule}: {finding.why}")
    for text in ("leave the lock file alone", "never edit the lock file", "do not touch the lock file, please"):
        m.correction(text)
    print(m.inject_corrections("Make the test suite pass again. Do not touch the lock file."))
