"""A simulated hydropower plant with known faults, in the place of the paper's private data: docs/hydropower.md."""

from penstock.simulate.files import write_plant
from penstock.simulate.hydropower import SimulatedPlant, simulate_hydropower
from penstock.simulate.truth import found_days, found_events

__all__ = ["SimulatedPlant", "found_days", "found_events", "simulate_hydropower", "write_plant"]
