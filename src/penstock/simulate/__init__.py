"""A simulated hydropower plant with known faults, in the place of the paper's private data: docs/hydropower.md."""

from penstock.simulate.files import write_plant
from penstock.simulate.hydropower import SimulatedPlant, simulate_hydropower

__all__ = ["SimulatedPlant", "simulate_hydropower", "write_plant"]
