"""The study: data sets, measures and comparisons."""
