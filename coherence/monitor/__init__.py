"""One agent, live: its facade, the pipeline behind it, sessions, recording and replay."""
