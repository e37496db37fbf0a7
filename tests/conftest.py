"""How Hypothesis runs: without deadlines, repeatable in CI, and without shrinking when `bite.py` counts mutants."""

import os

from hypothesis import Phase, settings

settings.register_profile("here", deadline=None, max_examples=20)
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, database=None)
settings.register_profile("bite", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("ci" if os.environ.get("CI") else "here")
