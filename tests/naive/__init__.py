"""The paper's equations as slow loops. Nothing here imports penstock, so that it can score it."""
