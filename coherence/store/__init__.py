"""Remembering: one SQLite file that holds all evidence, chained by hashes, for every room.

:class:`~coherence.store.store.Store` opens it; :mod:`coherence.store.hash_chain` tells what was tampered with;
:mod:`coherence.store.jsonl` writes it out as JSON lines.
"""
