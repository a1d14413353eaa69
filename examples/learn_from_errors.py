"""Errors that were fixed once: kept by hand, found again, and learned by a watched agent that is then told.

The agent is a stand-in that does what the script says; everything else is real. `coherence lessons list --store
lessons.db` shows afterwards what is known.
"""

from coherence import Monitor
from coherence.lessons import LessonStore

BROKEN = "Error response from daemon: driver failed programming external connectivity on endpoint web"
SCRIPT = [
    ("docker compose up -d", BROKEN, True),
    ("systemctl restart docker", "", False),
    ("docker compose up -d", "Container web  Started", False),
]
ALWAYS = {"guidance": {"randomise": False}}  # otherwise half of the firings are withheld, to see whether they help

with LessonStore("lessons.db") as lessons:
    lessons.record(
        pattern="PortInUse",
        error_text="OSError: [Errno 98] Address already in use: ('127.0.0.1', 8000)",
        fix_text="lsof -ti :8000 | xargs kill",
        tool="Bash",
    )
    for error in ("OSError: [Errno 98] Address already in use: ('::', 5432)", "ZeroDivisionError: division by zero"):
        found = lessons.query(error, tool="Bash")
        print("asked:", found[0].fix_text if found else "nothing is known of this")

    for session in ("monday", "tuesday"):
        with Monitor(agent="deployer", session=session, store="runs.db", lessons=lessons, config=ALWAYS) as m:
            for command, output, failed in SCRIPT:
                call = m.tool_call("Bash", {"command": command})
                m.tool_result(output, error=failed, call=call)
                guidance = m.decide().guidance
                if guidance:
                    print(f"{session}:", guidance.text)
                    m.delivered(guidance)  # after it has been put into the agent's next prompt
        for lesson in lessons.lessons(limit=1):
            print(f"{session}: {lesson.fix_text!r} recorded {lesson.count} times, helped {lesson.helped}")
