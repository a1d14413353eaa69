"""Settings for the whole suite."""

from hypothesis import settings

# A busy machine must not fail a property: what a test asserts is the law, not its speed.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
