"""``python -m coherence``."""

from coherence.cli.entry import run

if __name__ == "__main__":
    run("python -m coherence")
