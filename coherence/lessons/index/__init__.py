"""Vector indices of this process behind one small protocol.

SQLite is the truth about lessons; an index is derived from it and can always be rebuilt.
"""
