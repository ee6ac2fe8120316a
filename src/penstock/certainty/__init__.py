"""How many as high would normal data show? One question, asked of rows in order of time and of tables without time.

In time rows come in episodes, which `EpisodeRate` counts by maxima over blocks of time (`fit_episode_rate`). Rows of a
table are like independent draws: `expected_by_chance` compares the scores of all of them. Scores go in; the number
expected by chance comes out, or nothing where it cannot be said. Figures below 0.05 are never printed as numbers.
"""

from penstock.certainty.episodes import WELL_ABOVE_USUAL, EpisodeRate, fit_episode_rate
from penstock.certainty.rows import CLEARLY, SOME, Chance, about_figure, expected_by_chance

__all__ = [
    "CLEARLY",
    "SOME",
    "WELL_ABOVE_USUAL",
    "Chance",
    "EpisodeRate",
    "about_figure",
    "expected_by_chance",
    "fit_episode_rate",
]
