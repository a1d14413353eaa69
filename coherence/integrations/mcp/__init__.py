"""MCP: a server by which an agent reads itself, and a proxy that senses and gates the tools of any other server."""
