"""Four ways to look at a row, of which `penstock.Detector` is made: each gives a number that is high for odd rows."""
