"""Cost of the first ``Monitor()`` and the first ``check()`` of a process, without a store, bytecode cached.

Each figure is the best of several fresh processes. Run by ``make bench``; it asserts nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys

from showing import row

TIMES = 5
MODULES_TARGET, CHECK_TARGET_MS = 130, 5.0

SCRIPT = """
import sys, time
start = time.perf_counter()
import coherence
imported = time.perf_counter()
monitor = coherence.Monitor()
made = time.perf_counter()
modules = sum(name.partition(".")[0] == "coherence" for name in sys.modules)
monitor.check("Bash", {"command": "ls -la"})
checked = time.perf_counter()
import json
print(json.dumps([imported - start, made - start, checked - made, modules]))
"""

NUMPY = "import time; start = time.perf_counter(); import numpy; print((time.perf_counter() - start))"


def best(script: str) -> list[float]:
    """Return the smallest of each of a script's figures, over fresh processes."""
    found = []
    for _ in range(TIMES):
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        figures = json.loads(said)
        found.append(figures if isinstance(figures, list) else [figures])
    return [min(each) for each in zip(*found, strict=True)]


def main() -> None:
    """Print the figures beside their targets."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "coherence", "metrics", "providers"], check=False)
    best(SCRIPT)
    imported, made, checked, modules = best(SCRIPT)
    (numpy,) = best(NUMPY)
    sys.stdout.write("\nthe first use in a process, without a store\n")
    row("import coherence", imported * 1e3, 10, " ms")
    row("first Monitor(), imports included", made * 1e3, 150, " ms")
    row("of which numpy's import", numpy * 1e3, 150, " ms")
    row("modules of the package then", modules, MODULES_TARGET, "")
    row("first check()", checked * 1e3, CHECK_TARGET_MS, " ms")


if __name__ == "__main__":
    main()
