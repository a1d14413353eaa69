"""The state router: a state machine of 64 states that proposes a small change of an agent's configuration."""
