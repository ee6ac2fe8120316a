"""The deep competitors of the paper's appendix: AER keeps neighbours together, DAGMM has a Gaussian mixture.

Both need PyTorch, for training and for scoring: ``pip install 'penstock[deep]'``.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from penstock._parameters import Bounds, check_whole_number, number, optional, whole
from penstock._types import FloatArray
from penstock.detectors import BaseDetector
from penstock.factor.start import check_random_source, draws_from
from penstock.graph.points import Frame, plain_frame
from penstock.graph.rows import first_copies
from penstock.graph.similarities import binary_knn_graph
from penstock.scoring import distance_scores
from penstock.storage import Record
from penstock.thresholds import Contamination
from studies.ahmed2021.deep_nets import (
    Autoencoder,
    DAGMMTask,
    Mixture,
    Schedule,
    Training,
    batch_count,
    pose_aer,
    quiet_torch,
    settle_mixture,
    train,
    unpack_mixture,
    unpack_net,
    weight_count,
)

Hidden = int | str | Sequence[int] | None

_WIDEST, _NARROWEST = 60, 6  # of the first layer: Zong et al. (2018) give 120 columns 60 units, and 6 columns 12
_STEPS_PER_ROW, _FEWEST_STEPS, _ENOUGH_STEPS = 3, 600, 1500  # by the training loss alone, never by labels
_EPOCHS = 100
_LEAST_SPREAD = 1e-3  # of the rows rebuilt, relative to the rows: below, the net gives one answer to all of them
_DIGITS = 9  # of the largest score: scores that agree in them are the same
_ESTIMATION_UNITS = 10  # of the hidden layer of DAGMM's estimation net, as its authors have it
_FEWEST_UNITS = 4  # of DAGMM's inner layers: its authors' for a table of 6 columns
_DAGMM_RATE = 3e-3  # by the training loss alone, never by labels: lower than with 1e-3 on all four sets compared
_LEAST_NORM = 0.1  # of the root mean square norm of the rows: what a row's distance is divided by at least


def _check_hidden(name: str, value: Any) -> None:
    read_hidden(value)


class DeepDetector(BaseDetector):
    """A detector with an autoencoder.

    With scale=None the table as a whole is divided by a power of two, so that its widest column has a range near one;
    constant columns count from their constant.

    Attributes
    ----------
    layer_sizes_ : tuple of int
        Units of all layers of the autoencoder, from the columns over the code to the columns.
    n_iter_ : int
        Epochs.
    loss_curve_ : array of shape (n_iter_,)
        The mean loss of each epoch.
    learning_rate_ : float
        The rate that worked: a tenth of `learning_rate`, or less, if the loss overflowed.
    collapsed_ : bool
        Whether the net gives (nearly) the same answer to all rows. Fitting warns of it.
    """

    _bends_code: ClassVar[bool]

    n_components: int
    hidden: Hidden
    max_iter: int | None
    batch_size: int
    learning_rate: float
    random_state: Any

    @abstractmethod
    def _default_hidden(self, p: int) -> tuple[int, ...]:
        """Sizes of the layers between the columns and the code."""

    @abstractmethod
    def _train(self, rows: FloatArray, sizes: list[int]) -> tuple[Training, FloatArray] | None:
        """Train on framed rows that are not all equal: the record of training, and the net's weights."""

    def _learn_nothing(self, rows: FloatArray) -> None:
        """Learn, with a net of zeros, what gives score 0 to rows that are all the same; it rebuilds rows of zeros."""

    @abstractmethod
    def _score_framed(self, rows: FloatArray) -> FloatArray:
        """Scores of framed rows, each by itself."""

    _bounds: ClassVar[Bounds] = {
        "n_components": whole(1),
        "hidden": _check_hidden,
        "max_iter": optional(whole(1)),
        "batch_size": whole(2),
        "learning_rate": number(0.0, above=True),
        "random_state": check_random_source,
    }

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        p = A.shape[1]
        # Scaled columns are in [0, 1] already.
        self._frame = Frame(np.zeros(p), 0, np.zeros(p), None) if self.scale == "minmax" else plain_frame(A)
        rows = self._frame.scale(A)
        if (rows == rows[0]).all():
            sizes = self._layer_sizes(p)
            self._net = Autoencoder(np.array(sizes), self._bends_code, np.zeros(weight_count(sizes)))
            self.loss_curve_, self.learning_rate_ = np.empty(0), float(self.learning_rate)
            self._learn_nothing(rows)
        else:
            with quiet_torch():
                self._learn(rows)
        self.n_iter_ = len(self.loss_curve_)
        scores = self._score_framed(rows)
        self.collapsed_ = self._look_for_collapse(rows, scores)
        return scores

    def _learn(self, rows: FloatArray) -> None:
        sizes = self._layer_sizes(rows.shape[1])
        done = self._train(rows, sizes)
        if done is None:
            raise FloatingPointError(
                f"{type(self).__name__} could not be trained: its loss is not finite, neither with learning_rate = "
                f"{self.learning_rate:g} nor with smaller ones down to a ten-thousandth of it. Lower learning_rate or "
                f"the weights of the loss."
            )
        record, weights = done
        self._net = Autoencoder(np.array(sizes), self._bends_code, weights)
        self.loss_curve_, self.learning_rate_ = record.losses, float(record.learning_rate)
        if self.learning_rate_ != self.learning_rate:
            warnings.warn(
                f"The loss of {type(self).__name__} was not finite with learning_rate = {self.learning_rate:g}; it was "
                f"trained with {self.learning_rate_:g} instead.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _schedule(self, n: int) -> Schedule:
        epochs = choose_epochs(n, self.batch_size) if self.max_iter is None else int(self.max_iter)
        seed = int(draws_from(self.random_state).random() * 2**53)
        return Schedule(epochs, int(self.batch_size), float(self.learning_rate), seed)

    def _layer_sizes(self, p: int) -> list[int]:
        hidden = read_hidden(self.hidden)
        down = [p, *(self._default_hidden(p) if hidden is None else hidden)]
        return [*down, int(self.n_components), *down[::-1]]

    @property
    def layer_sizes_(self) -> tuple[int, ...]:
        """Units of all layers of the autoencoder."""
        return tuple(self._net.sizes.tolist())

    def _look_for_collapse(self, rows: FloatArray, scores: FloatArray) -> bool:
        """Tell whether all rows get nearly one answer although they differ; warn if so."""
        different = len(np.unique(first_copies(rows)))
        if different == 1:
            return False
        spread = float(self._net.rebuild(rows)[1].var(axis=0).sum() / rows.var(axis=0).sum())
        largest = float(np.abs(scores).max()) or 1.0
        distinct = len(np.unique(np.round(scores / largest, _DIGITS)))
        if spread >= _LEAST_SPREAD and 2 * distinct >= different:
            return False
        warnings.warn(
            f"The net of {type(self).__name__} has collapsed: it gives {distinct} different scores to {different} "
            f"different rows, and what it rebuilds varies {spread:.1e} times as much as the rows do. Its scores say "
            f"little about them. Try another random_state, a smaller penalty or weight_decay, or a larger max_iter.",
            ConvergenceWarning,
            stacklevel=5,
        )
        return True

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        return self._score_framed(self._frame.scale(A))

    def _storable_parameters(self) -> dict[str, Any]:
        """Files hold plain parameters only: several sizes become a text, which means the same."""
        sizes, parameters = read_hidden(self.hidden), super()._storable_parameters()
        if sizes is not None and not isinstance(self.hidden, int | str | np.integer):
            parameters["hidden"] = "-".join(map(str, sizes))
        return parameters

    def _pack_model(self) -> dict[str, Any]:
        return {
            "net": self._net.pack(),
            "origin": self._frame.origin,
            "exponent": self._frame.exponent,
            "losses": self.loss_curve_,
            "learning_rate": self.learning_rate_,
            "collapsed": self.collapsed_,
        }

    def _unpack_model(self, record: Record) -> None:
        p = self.n_features_in_
        self._net = unpack_net(record.part("net"), p, bends_code=self._bends_code)
        origin = record.array("origin", np.float64, (p,))
        self._frame = Frame(origin, record.whole("exponent", least=-2200, most=2200), np.zeros(p), None)
        self.loss_curve_ = record.array("losses", np.float64, (None,))
        self.n_iter_ = len(self.loss_curve_)
        self.learning_rate_ = record.number("learning_rate", least=0.0)
        self.collapsed_ = record.flag("collapsed")


class AER(DeepDetector):
    """Autoencoder with an embedding regulariser. Yu, Zeng, Tan, Yu (2013); in the appendix of Ahmed et al. (2021).

    Minimises mean ‖a_i − â_i‖² + penalty · mean over edges ‖z_i − z_j‖² + weight_decay · Σ w², where â_i is the row
    rebuilt from its code z_i and the edges join each row to its nearest ones. The score is ‖a − â‖. Layers are bent by
    tanh, save the last. Rows that fit into one batch are used with all edges at every step; in smaller batches, each
    row meets one neighbour, drawn again at each step, so that on average all edges count alike.

    Parameters
    ----------
    n_components : int
        Size of the code.
    hidden : None, int, tuple of int or text
        Units of the layers between the columns and the code, mirrored behind it: 20, (60, 30) or "60-30". None is one
        layer of 2p units, at least 6 and at most 60. A tuple comes back from a file as a text.
    penalty : float ≥ 0
        Weight of the embedding term.
    n_neighbors : int
        Each row is joined to so many nearest ones.
    max_iter : int or None
        Epochs. None is 100, or more for few rows: as many as make 3 steps per row, but at least 600 steps and at most
        1,500.
    batch_size : int
        Rows per step.
    learning_rate : float
        Of Adam. Where the loss overflows, training begins again with a tenth of it, up to four times.
    weight_decay : float ≥ 0
        Weight of the sum of squared weights.
    contamination, scale : see `LoMST`
    random_state : int, RandomState, Generator or None
        Same seed, same scores, to the last bit and whatever the number of threads.

    Attributes
    ----------
    layer_sizes_, n_iter_, loss_curve_, learning_rate_, collapsed_ :
        See `DeepDetector`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.r_[np.random.default_rng(0).normal(size=(200, 4)), [[6.0, 6.0, 6.0, 6.0]]]
    >>> detector = AER(n_components=2, random_state=0).fit(X)
    >>> int(detector.top(1).index[0]), detector.layer_sizes_
    (200, (4, 8, 2, 8, 4))
    """

    _bends_code: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 5,
        hidden: Hidden = None,
        penalty: float = 0.1,
        n_neighbors: int = 5,
        max_iter: int | None = None,
        batch_size: int = 1024,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        contamination: Contamination = "auto",
        scale: str | None = "minmax",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.penalty = penalty
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.contamination = contamination
        self.scale = scale
        self.random_state = random_state

    _bounds: ClassVar[Bounds] = {"penalty": number(0.0), "n_neighbors": whole(1), "weight_decay": number(0.0)}

    def _default_hidden(self, p: int) -> tuple[int, ...]:
        return (first_width(p),)

    def _train(self, rows: FloatArray, sizes: list[int]) -> tuple[Training, FloatArray] | None:
        graph = binary_knn_graph(rows, self.n_neighbors)
        task = pose_aer(rows, graph, float(self.penalty), float(self.weight_decay))
        record = train(task, [sizes], self._schedule(len(rows)))
        return None if record is None else (record, record.weights[0])

    def _score_framed(self, rows: FloatArray) -> FloatArray:
        errors = distance_scores(rows - self._net.rebuild(rows)[1], np.zeros(rows.shape[1]))
        with np.errstate(over="ignore"):
            scores: FloatArray = np.ldexp(errors, self._frame.exponent)
        return scores

    def _unpack_model(self, record: Record) -> None:
        super()._unpack_model(
            record.require_fields("net", "origin", "exponent", "losses", "learning_rate", "collapsed")
        )


class DAGMM(DeepDetector):
    """Deep autoencoding Gaussian mixture model. Zong et al. (2018); in the appendix of Ahmed et al. (2021).

    An autoencoder compresses a row a to a code and rebuilds it as â; z = [code, ‖a − â‖/‖a‖, cosine of a and â]; an
    estimation net (10 tanh units, dropout, softmax) says to which Gaussians z belongs; and all is trained at once to
    minimise mean ‖a − â‖² + energy_weight · mean energy + variance_weight · Σ 1/Σ_kjj. Then the Gaussians are taken
    from all training rows, and the score is the energy of a row: −log of its density, so it may be negative.

    Differs: the norms that z divides by are at least a tenth of the root mean square norm of the training rows, for
    rows that are (nearly) 0; and learning is faster and shorter than the authors' 20,000 epochs for small tables.

    The loss wants the distance and the cosine in z to vary (1/Σ_kjj), which they do little where rows are rebuilt well.
    Where the columns' variances sum to little, as in tables of few scaled columns, this outweighs ‖a − â‖²: rows may
    end up rebuilt worse than by the column means, even if training begins with a net that rebuilds them well.

    Parameters
    ----------
    n_components : int
        Size of the code.
    n_mixtures : int
        Gaussians.
    hidden : None, int, tuple of int or text
        Units of the layers between the columns and the code, mirrored behind it: (60, 30, 10) or "60-30-10". None is
        these, the authors' for 120 columns, in proportion to a first layer of 2p units (at least 6 and at most 60; the
        others at least 4).
    dropout : float in [0, 1)
        Share of the estimation net's hidden units that are left out at each step.
    energy_weight, variance_weight : float ≥ 0
        λ1 and λ2 of the loss.
    learning_rate : float
        See `AER`. The default was chosen by the training loss alone, never by labels.
    max_iter, batch_size, contamination, scale, random_state :
        See `AER`.

    Attributes
    ----------
    layer_sizes_, n_iter_, loss_curve_, learning_rate_, collapsed_ :
        See `DeepDetector`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.r_[np.random.default_rng(0).normal(size=(200, 4)), [[6.0, 6.0, 6.0, 6.0]]]
    >>> detector = DAGMM(random_state=0).fit(X)
    >>> int(detector.top(1).index[0]), detector.layer_sizes_
    (200, (4, 8, 4, 4, 1, 4, 4, 8, 4))
    """

    _bends_code: ClassVar[bool] = False

    def __init__(
        self,
        n_components: int = 1,
        n_mixtures: int = 4,
        hidden: Hidden = None,
        dropout: float = 0.5,
        energy_weight: float = 0.1,
        variance_weight: float = 0.005,
        max_iter: int | None = None,
        batch_size: int = 1024,
        learning_rate: float = _DAGMM_RATE,
        contamination: Contamination = "auto",
        scale: str | None = "minmax",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_mixtures = n_mixtures
        self.hidden = hidden
        self.dropout = dropout
        self.energy_weight = energy_weight
        self.variance_weight = variance_weight
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.contamination = contamination
        self.scale = scale
        self.random_state = random_state

    _bounds: ClassVar[Bounds] = {
        "n_mixtures": whole(1),
        "dropout": number(0.0, most=0.999),
        "energy_weight": number(0.0),
        "variance_weight": number(0.0),
    }

    def _default_hidden(self, p: int) -> tuple[int, ...]:
        width = first_width(p)
        return width, max(_FEWEST_UNITS, width // 2), max(_FEWEST_UNITS, width // 6)

    def _train(self, rows: FloatArray, sizes: list[int]) -> tuple[Training, FloatArray] | None:
        floor = _LEAST_NORM * float(np.sqrt((rows * rows).sum(axis=1).mean()))
        weights = float(self.energy_weight), float(self.variance_weight)
        task = DAGMMTask(torch.from_numpy(rows), floor, float(self.dropout), *weights)
        nets = [sizes, [int(self.n_components) + 2, _ESTIMATION_UNITS, int(self.n_mixtures)]]
        record = train(task, nets, self._schedule(len(rows)))
        mixture = None if record is None else settle_mixture(task, record, nets)
        if record is None or mixture is None:
            return None
        self._mixture: Mixture = mixture
        return record, record.weights[0]

    def _learn_nothing(self, rows: FloatArray) -> None:
        size = int(self.n_components) + 2
        self._mixture = Mixture(np.zeros(1), np.zeros((1, size)), np.eye(size)[None], 1.0)

    def _score_framed(self, rows: FloatArray) -> FloatArray:
        return self._mixture.energies(rows, self._net)

    def _pack_model(self) -> dict[str, Any]:
        return super()._pack_model() | {"mixture": self._mixture.pack()}

    def _unpack_model(self, record: Record) -> None:
        record.require_fields("net", "origin", "exponent", "losses", "learning_rate", "collapsed", "mixture")
        super()._unpack_model(record)
        size = int(self._net.sizes[len(self._net.sizes) // 2]) + 2
        self._mixture = unpack_mixture(record.part("mixture"), size)


def first_width(p: int) -> int:
    """Units of the first layer for p columns: 2p, but at least 6 and at most 60.

    >>> [first_width(p) for p in (1, 7, 27, 57)]
    [6, 14, 54, 60]
    """
    return min(_WIDEST, max(_NARROWEST, 2 * p))


def read_hidden(hidden: Hidden) -> tuple[int, ...] | None:
    """Sizes of hidden layers from a number, a sequence or a text; None stays None.

    >>> read_hidden(8), read_hidden((60, 30)), read_hidden("60-30-10"), read_hidden(())
    ((8,), (60, 30), (60, 30, 10), ())
    >>> read_hidden("60,30")
    Traceback (most recent call last):
    ValueError: hidden must be None, a whole number ≥ 1, several such as (60, 30, 10), or a text such as '60-30-10'; ...
    """
    if hidden is None:
        return None
    try:
        sizes: tuple[object, ...]
        if isinstance(hidden, str):
            sizes = tuple(int(size) for size in hidden.split("-")) if hidden else ()
        else:
            sizes = tuple(hidden) if isinstance(hidden, Sequence) else (hidden,)
        for size in sizes:
            check_whole_number("hidden", size, least=1)
    except ValueError:
        raise ValueError(
            f"hidden must be None, a whole number ≥ 1, several such as (60, 30, 10), or a text such as '60-30-10'; "
            f"got {hidden!r:.100}."
        ) from None
    return tuple(int(size) for size in sizes)  # type: ignore[call-overload]


def choose_epochs(n: int, batch_size: int) -> int:
    """100 passes over the rows, or more where that makes few steps: 3 per row, but at least 600 and at most 1,500.

    >>> choose_epochs(20, 1024), choose_epochs(214, 1024), choose_epochs(5000, 1024), choose_epochs(50_000, 1024)
    (600, 642, 300, 100)
    """
    steps = min(_ENOUGH_STEPS, max(_FEWEST_STEPS, _STEPS_PER_ROW * n))
    return max(_EPOCHS, -(-steps // batch_count(n, batch_size)))
