"""Scored runs, and the self-contained HTML page that shows them."""

from coherence.report.html import write_html
from coherence.report.score import ScoredRun, score_transcript

__all__ = ["ScoredRun", "score_transcript", "write_html"]
