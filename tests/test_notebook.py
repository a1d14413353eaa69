"""The example notebook: it runs from top to bottom, and each object in it draws itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the notebook after each of its cells has run, in a kernel of its own."""
    for name in ("ipykernel", "matplotlib", "pandas", "nbclient"):
        pytest.importorskip(name)
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        notebook, timeout=300, startup_timeout=180, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    assert list(folder.iterdir()) == [], "it leaves nothing where it is opened"
    return notebook


def shown(notebook: Any, last: str, kind: str) -> str:
    """Return what the cell with this last line has shown of a kind, names without the places where they may break."""
    (cell,) = (each for each in notebook.cells if each.cell_type == "code" and each.source.split("\n")[-1] == last)
    (data,) = (output.data for output in cell.outputs if output.output_type == "execute_result")
    return str(data[kind]).replace("<wbr>", "")


def test_notebook_is_kept_small_and_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert NOTEBOOK.stat().st_size < 10_000
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 8 and not [cell for cell in code if cell.outputs or cell.execution_count]


@pytest.mark.slow
def test_notebook_every_object_draws_itself(run: Any) -> None:
    assert "◆ O orange" in shown(run, "m", "text/html") and "builder/1" in shown(run, "m", "text/html")
    assert "◆ O warn" in shown(run, "decision", "text/html")
    assert "the newest calls failed" in shown(run, "m.latest", "text/html")
    assert "2 runs" in shown(run, "runs", "text/html")
    assert "builder/1" in shown(run, 'runs["builder/1"]', "text/html")
    assert "builder/1" in shown(run, "lowest.round(2)", "text/plain")
    for cell in run.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error" and output.get("name") != "stderr", output
            assert "<script" not in output.get("data", {}).get("text/html", "")


@pytest.mark.slow
def test_notebook_shows_the_figure_once(run: Any) -> None:
    pictures = [
        output for cell in run.cells for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 1
    assert len(shown(run, "figure", "image/png")) > 10_000  # base64; an empty figure takes 2 kB
