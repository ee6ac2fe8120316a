"""Simulated hydropower plant with known faults, in place of the private data of the paper: docs/hydropower.md."""

from penstock.simulate._readings import AREAS
from penstock.simulate.hydropower import SimulatedPlant, found_events, simulate_hydropower, write_plant

__all__ = ["AREAS", "SimulatedPlant", "found_events", "simulate_hydropower", "write_plant"]
