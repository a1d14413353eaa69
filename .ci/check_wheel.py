"""Prove an installed wheel: every module imports, nothing is installed at top level, the command works."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import coherence
from coherence.core.errors import MissingExtraError

FACES = {"coherence.tui": ("textual",), "coherence.web": ("starlette", "uvicorn", "h11")}
"""Room of a face -> packages of its extra, which a bare wheel lacks."""

package = Path(coherence.__file__).parent
if "site-packages" not in package.parts:
    sys.exit(f"coherence comes from {package}, not from the wheel")

names = [module.name for module in pkgutil.walk_packages([str(package)], "coherence.")]
for name in names:
    # what runs when it is imported, what a maintainer runs, and what pytest or an agent framework alone loads
    if name.startswith("coherence.frameworks.") and not name.endswith((".agents", ".trace")):
        continue
    if name in ("coherence.__main__", "coherence.providers.models.build", "coherence.pytest_plugin.plugin"):
        continue
    try:
        importlib.import_module(name)
    except (ModuleNotFoundError, MissingExtraError) as error:
        # of the faces, some files are written for the package of their extra
        missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        package_name = (getattr(missing, "name", None) or "").partition(".")[0]
        if package_name not in FACES.get(name.rpartition(".")[0], ()):
            raise
for name in coherence.__all__:
    getattr(coherence, name)

for name in ("metrics", "providers", "tests", "examples"):
    if importlib.util.find_spec(name) is not None:
        sys.exit(f"the wheel installs a top-level {name}")
    if name in sys.modules:
        sys.exit(f"{name} was imported at top level")
files = importlib.metadata.files("coherence-sensor") or []
tops = {file.parts[0] for file in files}
if not all(top == "coherence" or top.startswith(("coherence_sensor-", "..")) for top in tops):
    sys.exit(f"the wheel installs more than coherence: {sorted(tops)}")

command = Path(sys.executable).with_name("coherence")
arguments = ["score", sys.argv[1], "--store", "runs.db"]
scored = subprocess.run([command, *arguments], check=True, capture_output=True, text=True)
if "tau_airline/45/1" not in scored.stdout:
    sys.exit(f"coherence score printed:\n{scored.stdout}")
replayed = subprocess.run([command, "replay", "runs.db", "--check"], check=True, capture_output=True, text=True)
if "15 of 15 ticks are equal bit for bit" not in replayed.stdout:
    sys.exit(f"coherence replay printed:\n{replayed.stdout}")
schema = subprocess.run([command, "schema", "score"], check=True, capture_output=True, text=True)
if '"coherence.score/1"' not in schema.stdout:
    sys.exit(f"coherence schema printed:\n{schema.stdout}")
subprocess.run([command, "demo", "--embedder", "hashing"], check=True, capture_output=True, text=True)
if not Path("report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>"):
    sys.exit("coherence demo wrote no report")
sys.stdout.write(f"{len(names)} modules import, the command works\n")
