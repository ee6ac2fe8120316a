"""Settings of the solvers: plain records, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock._parameters import Bounds, ParameterError, check_bounds, number, optional, whole

MAX_ITER = 300
TOL = 1e-4


class _Checked:
    """Settings with `_bounds`, which are checked when they are made."""

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True)
class Coordinate(_Checked):
    """Settings of exact coordinate descent, the default solver. One iteration is one sweep over W and H.

    Use it unless you have a reason not to. The loss never rises. It begins from eigenvectors (decision 20), which is
    quicker and ends lower than random starts; seeds matter little.

    Parameters
    ----------
    profile_passes : int, default 2
        Passes over H after each sweep over W. They cost next to nothing: given WᵀW and WᵀA they touch K×p numbers.

    Examples
    --------
    >>> Coordinate().profile_passes
    2
    """

    profile_passes: int = 2

    _bounds: ClassVar[Bounds] = {"profile_passes": whole(1)}


@dataclass(frozen=True)
class RowBlocks(_Checked):
    """Settings of coordinate descent by blocks of rows, for several cores. The loss never rises.

    Use it for large tables on one machine. It begins from eigenvectors, as `Coordinate` does. The rows are cut into
    blocks of near neighbours; fewer where the table has not enough different rows. Each block sweeps its own rows by
    exact coordinate steps with the weights of the other blocks as they were, so that the result depends on the number
    of blocks, but not on the number of threads.

    Parameters
    ----------
    n_blocks : int, default 8
        Number of blocks.
    profile_passes : int, default 2
        Passes over H after each sweep.

    Examples
    --------
    >>> RowBlocks().n_blocks
    8
    """

    n_blocks: int = 8
    profile_passes: int = 2

    _bounds: ClassVar[Bounds] = {"n_blocks": whole(1), "profile_passes": whole(1)}


@dataclass(frozen=True)
class Multiplicative(_Checked):
    """Settings of the multiplicative updates W ← W∘(N/P)^β, H ← H∘(αWᵀA)/(αGH+γH), floored at 1e-12.

    Use it to compare with published results; `Coordinate` converges in far fewer iterations. It begins from one random
    start. N = (2σ+λ)SW + αC and P = 2σWG + αWQ + λDW + γW are the two halves of the gradient. Without the symmetric
    term (σ = 0) the loss is quadratic in W and β = 1, the rule of Lee and Seung (and of Cai et al. for GNMF), never
    raises it. Where rows of H are bounded, scaling a row back would raise the Laplacian term: H takes the exact bounded
    row-by-row minimum (HALS).

    Parameters
    ----------
    exponent : float, default 0.5
        β with the symmetric term. ¼ provably never raises the loss; ½ is twice as fast and never raised it in any
        trial; 1 does raise it and is refused.

    Examples
    --------
    >>> Multiplicative(exponent=0.25)
    Multiplicative(exponent=0.25)
    """

    exponent: float = 0.5

    _bounds: ClassVar[Bounds] = {"exponent": number(0.0, above=True, most=0.5)}  # beyond, the loss can rise


@dataclass(frozen=True)
class BlockSGD(_Checked):
    """Settings of block stochastic gradient descent, Algorithm 1 of Ahmed et al. (2021).

    Use it for the paper's algorithm; `Coordinate` reaches the minimum sooner. The paper gives no rule for the steps.
    Here an entry's step is a pace over a bound on its curvature, from WᵀW, HHᵀ and the row's own similarities:
    L_ik = 4σ(Σ_m (WᵀW)_km + 2‖w_i‖² + D_i) + 2αΣ_m (HHᵀ)_km + 2γ for W, 2αΣ_m (WᵀW)_km + 2γ for H. So one pair of very
    near rows does not set the steps of all others. The pace is 2, and half as long after every epoch that did not lower
    the objective. An epoch is B² rounds in which every instance set {i,j,k} comes up once, in random order.

    Parameters
    ----------
    n_blocks : int, default 5
        Blocks B into which rows (in their order) and columns are split.
    first_step, last_step : float or None, default None
        Steps of your own instead: they fall linearly from the first to the last over `rounds` rounds, the same for all
        entries, and instance sets are drawn anew for each round, as in ALAD (Liu et al. 2017), from which the paper's
        formulation comes; there 0.04 and 0.0035, with 700 rounds. A run that explodes raises an error: with
        similarities such as 1/M most do.
    rounds : int, default 2500
        Most rounds.
    stall : float, default 3e-4
        The run ends when an epoch, and one exact sweep of coordinate descent that is tried from there but not kept,
        lower the objective by less than this share. With steps of your own it ends as in ALAD, after twice 10 rounds
        that lowered it by less. With 0 all rounds are run. In any case it has converged if such a sweep would lower
        the objective by less than this share (for 0: 3e-4), and otherwise warns by how much it would.

    Examples
    --------
    >>> BlockSGD(rounds=100, first_step=0.004, last_step=0.0004).n_blocks
    5
    """

    n_blocks: int = 5
    first_step: float | None = None
    last_step: float | None = None
    rounds: int = 2500
    stall: float = 3e-4

    _bounds: ClassVar[Bounds] = {
        "n_blocks": whole(1),
        "first_step": optional(number(0.0, above=True)),
        "last_step": optional(number(0.0, above=True)),
        "rounds": whole(1),
        "stall": number(0.0),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        first, last = self.first_step, self.last_step
        if (first is None) != (last is None):
            raise ParameterError("first_step", f" and last_step must be given together; got {first!r} and {last!r}.")
        if first is not None and last is not None and last > first:
            raise ParameterError("last_step", f" must be at most first_step = {first!r}, as steps fall; got {last!r}.")


Settings = Coordinate | RowBlocks | Multiplicative | BlockSGD
DEFAULT = Coordinate()
