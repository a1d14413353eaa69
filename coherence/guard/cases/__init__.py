"""The eval packet: sessions with a known failure whose verdict is asserted against the monitor's decisions."""
