"""The deep competitors: an autoencoder that keeps neighbours together, and one with a Gaussian mixture.

Training needs PyTorch (``pip install 'penstock[deep]'``); loading a trained detector and scoring with it do not.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from penstock._parameters import check_number, check_whole_number
from penstock._types import FloatArray
from penstock.detectors._deep_base import DeepDetector
from penstock.detectors._deep_net import Mixture, unpack_mixture
from penstock.detectors._deep_rules import Hidden, first_width
from penstock.graph.similarities import binary_knn_graph
from penstock.scoring import distance_scores
from penstock.storage import Record
from penstock.thresholds import Contamination

_ESTIMATION_UNITS = 10  # of the hidden layer of DAGMM's estimation net, as its authors have it
_FEWEST_UNITS = 4  # of DAGMM's inner layers: its authors' for a table of 6 columns
_DAGMM_RATE = 3e-3  # by the training loss alone, never by labels: lower than with 1e-3 on all four sets compared
_LEAST_NORM = 0.1  # of the root mean square norm of the rows: what a row's distance is divided by at least


class AER(DeepDetector):
    """Autoencoder with an embedding regulariser. Yu, Zeng, Tan, Yu (2013); in the appendix of Ahmed et al. (2021).

    Minimises mean ‖a_i − â_i‖² + penalty · mean over edges ‖z_i − z_j‖² + weight_decay · Σ w², where â_i is the row
    rebuilt from its code z_i and the edges join each row to its nearest ones. The score is ‖a − â‖. Layers are bent by
    tanh, save the last. Rows that fit into one batch are used with all edges at every step; in smaller batches, each
    row meets one neighbour, drawn anew at each step, so that on average all edges count alike.

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
        Of Adam. Where the loss overflows, training begins anew with a tenth of it, up to four times.
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

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number("penalty", self.penalty, least=0.0)
        check_whole_number("n_neighbors", self.n_neighbors, least=1)
        check_number("weight_decay", self.weight_decay, least=0.0)

    def _default_hidden(self, p: int) -> tuple[int, ...]:
        return (first_width(p),)

    def _train(self, rows: FloatArray, sizes: list[int], training: Any) -> tuple[Any, FloatArray] | None:
        graph = binary_knn_graph(rows, self.n_neighbors)
        task = training.pose_aer(rows, graph, float(self.penalty), float(self.weight_decay))
        record = training.train(task, [sizes], self._schedule(len(rows), training))
        return None if record is None else (record, record.weights[0])

    def _learn_nothing(self, rows: FloatArray) -> None:
        """A net of zeros rebuilds rows of zeros."""

    def _score_framed(self, rows: FloatArray) -> FloatArray:
        errors = distance_scores(rows - self._net.rebuild(rows)[1], np.zeros(rows.shape[1]))
        with np.errstate(over="ignore"):
            scores: FloatArray = np.ldexp(errors, self._frame.exponent)
        return scores

    def _unpack_model(self, record: Record) -> None:
        super()._unpack_model(record.only("net", "origin", "exponent", "losses", "learning_rate", "collapsed"))


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

    def check_parameters(self) -> None:
        super().check_parameters()
        check_whole_number("n_mixtures", self.n_mixtures, least=1)
        check_number("dropout", self.dropout, least=0.0)
        if self.dropout >= 1:
            raise ValueError(f"dropout must be a number below 1; got {self.dropout!r}.")
        check_number("energy_weight", self.energy_weight, least=0.0)
        check_number("variance_weight", self.variance_weight, least=0.0)

    def _default_hidden(self, p: int) -> tuple[int, ...]:
        width = first_width(p)
        return width, max(_FEWEST_UNITS, width // 2), max(_FEWEST_UNITS, width // 6)

    def _train(self, rows: FloatArray, sizes: list[int], training: Any) -> tuple[Any, FloatArray] | None:
        floor = _LEAST_NORM * float(np.sqrt((rows * rows).sum(axis=1).mean()))
        weights = float(self.energy_weight), float(self.variance_weight)
        task = training.pose_dagmm(rows, floor, float(self.dropout), *weights)
        nets = [sizes, [int(self.n_components) + 2, _ESTIMATION_UNITS, int(self.n_mixtures)]]
        record = training.train(task, nets, self._schedule(len(rows), training))
        mixture = None if record is None else training.settle_mixture(task, record, nets)
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
        record.only("net", "origin", "exponent", "losses", "learning_rate", "collapsed", "mixture")
        super()._unpack_model(record)
        size = int(self._net.sizes[len(self._net.sizes) // 2]) + 2
        self._mixture = unpack_mixture(record.part("mixture"), size)
