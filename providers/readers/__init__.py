"""Transcript readers: one file a format, and the detection of the format."""

from coherence.providers.readers.read import FORMATS, read_messages, read_transcripts
from coherence.providers.readers.source import MAX_BYTES

__all__ = ["FORMATS", "MAX_BYTES", "read_messages", "read_transcripts"]
