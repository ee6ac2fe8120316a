"""How many as high would normal data show? One question, asked of rows in order of time and of tables without time.

In time rows come in episodes, which `EpisodeRate` counts by maxima over blocks of time (`fit_episode_rate`). Rows of a
table are like independent draws: `RowRate` compares new ones with those of a good table, `expected_by_chance` all of a
table with each other. Scores go in; the number expected by chance comes out, or NaN and the reason (the sentences
below) where it cannot be said. Every detector has it as `expected_by_chance` and `chance_unknown`. Figures below 0.05
are never printed as numbers.
"""

from penstock.certainty.episodes import WELL_ABOVE_USUAL, EpisodeRate, fit_episode_rate
from penstock.certainty.row_rate import RowRate
from penstock.certainty.rows import CLEARLY, SOME, Chance, about_figure, expected_by_chance

NO_RATE = "This method gives scores without a rate."
FOLLOWING = "Rows are much like the ones before, and this method scores them one by one: it cannot say how sure it is."
TRAINING_ROWS = "Rows that were fitted to have a rank among each other, and no rate."
TOO_FEW_BLOCKS = "The record is too short to say how often chance would give such an episode."
TOO_FEW_ROWS = "There are too few rows to say how many would stand out by chance."

__all__ = [
    "CLEARLY",
    "FOLLOWING",
    "NO_RATE",
    "SOME",
    "TOO_FEW_BLOCKS",
    "TOO_FEW_ROWS",
    "TRAINING_ROWS",
    "WELL_ABOVE_USUAL",
    "Chance",
    "EpisodeRate",
    "RowRate",
    "about_figure",
    "expected_by_chance",
    "fit_episode_rate",
]
