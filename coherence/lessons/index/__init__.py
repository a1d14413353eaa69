"""Vector indices behind one small protocol: in this process, or on a server that a fleet shares.

SQLite is the truth about lessons; an index is derived from it and can always be rebuilt.
"""
