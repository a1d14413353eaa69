"""An agent's state: a fold of its events, and the detectors that follow along."""
