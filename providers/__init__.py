"""Where state and vectors come from: state providers, transcript readers, embedders. One file each."""

from coherence.providers.callables import CallableState
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.minilm import MiniLMEmbedder
from coherence.providers.openai_compatible import OpenAICompatibleEmbedder
from coherence.providers.sentence_transformer import SentenceTransformerEmbedder
from coherence.providers.static import StaticState
from coherence.providers.transcript import Step, ToolCall, Transcript, TranscriptState

__all__ = [
    "CallableState",
    "HashingEmbedder",
    "MiniLMEmbedder",
    "OpenAICompatibleEmbedder",
    "SentenceTransformerEmbedder",
    "StaticState",
    "Step",
    "ToolCall",
    "Transcript",
    "TranscriptState",
]
