"""What the deep detectors share: framing, training, a look at whether the net collapsed, and saving."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from penstock._parameters import check_number, check_whole_number
from penstock._types import FloatArray
from penstock.detectors._base import BaseDetector
from penstock.detectors._deep_net import Autoencoder, unpack_net, weight_count
from penstock.detectors._deep_rules import Hidden, choose_epochs, read_hidden
from penstock.factor.start import draws_from
from penstock.graph.points import Frame, plain_frame
from penstock.graph.rows import first_copies
from penstock.storage import Record

_LEAST_SPREAD = 1e-3  # of the rows rebuilt, relative to the rows: below, the net gives one answer to all of them
_DIGITS = 9  # of the largest score: scores that agree in them are the same


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
    def _train(self, rows: FloatArray, sizes: list[int], training: Any) -> tuple[Any, FloatArray] | None:
        """Train on framed rows that are not all equal: the record of training, and the net's weights."""

    @abstractmethod
    def _learn_nothing(self, rows: FloatArray) -> None:
        """Beside a net of zeros, what gives score 0 to rows that are all the same."""

    @abstractmethod
    def _score_framed(self, rows: FloatArray) -> FloatArray:
        """Scores of framed rows, each by itself."""

    def check_parameters(self) -> None:
        super().check_parameters()
        check_whole_number("n_components", self.n_components, least=1)
        read_hidden(self.hidden)
        if self.max_iter is not None:
            check_whole_number("max_iter", self.max_iter, least=1)
        check_whole_number("batch_size", self.batch_size, least=2)
        check_number("learning_rate", self.learning_rate, least=0.0, above=True)
        draws_from(self.random_state)  # raises if it is no source of random numbers

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        training = _training_module(type(self).__name__)
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
            with training.quiet_torch():
                self._learn(rows, training)
        self.n_iter_ = len(self.loss_curve_)
        scores = self._score_framed(rows)
        self.collapsed_ = self._look_for_collapse(rows, scores)
        return scores

    def _learn(self, rows: FloatArray, training: Any) -> None:
        sizes = self._layer_sizes(rows.shape[1])
        done = self._train(rows, sizes, training)
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

    def _schedule(self, n: int, training: Any) -> Any:
        epochs = choose_epochs(n, self.batch_size) if self.max_iter is None else int(self.max_iter)
        seed = int(draws_from(self.random_state).random() * 2**53)
        return training.Schedule(epochs, int(self.batch_size), float(self.learning_rate), seed)

    def _layer_sizes(self, p: int) -> list[int]:
        hidden = read_hidden(self.hidden)
        down = [p, *(self._default_hidden(p) if hidden is None else hidden)]
        return [*down, int(self.n_components), *down[::-1]]

    @property
    def layer_sizes_(self) -> tuple[int, ...]:
        """Units of all layers of the autoencoder."""
        return tuple(self._net.sizes.tolist())

    def _look_for_collapse(self, rows: FloatArray, scores: FloatArray) -> bool:
        """Whether all rows get nearly one answer although they differ; warns if so."""
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


def _training_module(name: str) -> ModuleType:
    """The part that needs PyTorch: only fitting does, not loading and scoring."""
    try:
        from penstock.detectors import _deep_training
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise ImportError(f"{name} needs PyTorch: pip install 'penstock[deep]'") from error
    return _deep_training
