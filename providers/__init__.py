"""Sources of state and vectors: state providers, transcript readers, embedders. One file each."""

from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_names

if TYPE_CHECKING:
    from coherence.providers.callables import CallableState
    from coherence.providers.chat_judge import ChatJudge
    from coherence.providers.cross_encoder_judge import CrossEncoderJudge
    from coherence.providers.hashing import HashingEmbedder
    from coherence.providers.minilm import MiniLMEmbedder
    from coherence.providers.openai_compatible import OpenAICompatibleEmbedder
    from coherence.providers.sentence_transformer import SentenceTransformerEmbedder
    from coherence.providers.static import StaticState
    from coherence.providers.transcript import Step, Transcript, TranscriptCall, TranscriptState

_HOME = {
    "CallableState": "coherence.providers.callables",
    "ChatJudge": "coherence.providers.chat_judge",
    "CrossEncoderJudge": "coherence.providers.cross_encoder_judge",
    "HashingEmbedder": "coherence.providers.hashing",
    "MiniLMEmbedder": "coherence.providers.minilm",
    "OpenAICompatibleEmbedder": "coherence.providers.openai_compatible",
    "SentenceTransformerEmbedder": "coherence.providers.sentence_transformer",
    "StaticState": "coherence.providers.static",
    "Step": "coherence.providers.transcript",
    "TranscriptCall": "coherence.providers.transcript",
    "Transcript": "coherence.providers.transcript",
    "TranscriptState": "coherence.providers.transcript",
}

__all__ = [
    "CallableState",
    "ChatJudge",
    "CrossEncoderJudge",
    "HashingEmbedder",
    "MiniLMEmbedder",
    "OpenAICompatibleEmbedder",
    "SentenceTransformerEmbedder",
    "StaticState",
    "Step",
    "Transcript",
    "TranscriptCall",
    "TranscriptState",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
