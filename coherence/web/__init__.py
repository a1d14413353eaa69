"""The web face: a server on the loopback device that shows a store in a browser."""
