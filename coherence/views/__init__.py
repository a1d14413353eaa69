"""Views on a store for the faces: agents, sessions, timelines, steps, firings, lessons, guards and experiments."""
