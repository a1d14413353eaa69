"""A reader of Acme's logs: one line an entry, ``{"acme": 1, "who": "agent", "what": "text"}``."""

from coherence.core.errors import TranscriptError
from coherence.providers.transcript import Step


class AcmeLog:
    """Logs of Acme's agents."""

    def matches(self, documents):
        """Look at the first line."""
        first = documents[0].value
        return isinstance(first, dict) and first.get("acme") == 1

    def read(self, source):
        """Yield the one run of the file."""
        steps = []
        for document in source.documents:
            entry = document.value
            if not isinstance(entry, dict) or not isinstance(entry.get("what"), str):
                raise TranscriptError(source.path, "expected lines {acme, who, what}", document.line)
            steps.append(Step(role="assistant" if entry.get("who") == "agent" else "user", content=entry["what"]))
        yield source.transcript(steps)
