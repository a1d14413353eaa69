"""Stand-alone scripts that drive other projects, and the client that our benchmark talks to them with."""
