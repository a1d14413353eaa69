"""Scored runs, and the self-contained HTML page that shows them."""
