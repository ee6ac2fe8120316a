"""What tests of several rooms share. Nothing here imports penstock."""
