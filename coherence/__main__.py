"""``python -m coherence``."""

from coherence.cli.main import main

if __name__ == "__main__":
    main()
