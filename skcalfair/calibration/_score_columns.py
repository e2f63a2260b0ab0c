"""What transformers of score columns share: which columns hold probabilities."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from .._log_odds import log_odds

Floats = NDArray[np.float64]

INPUT_CONSTRAINT = [StrOptions({"auto", "probability", "log_odds"})]
EPS_CONSTRAINT = [Interval(Real, 0, 0.5, closed="neither")]


class ScoreColumnsMixin:
    """Reads each column as probabilities or as log-odds, by the parameter `input`."""

    input: str
    eps: float
    is_probability_: NDArray[np.bool_]

    def _find_probabilities(self, X: Floats) -> NDArray[np.bool_]:
        if self.input == "auto":
            return np.asarray(((X >= 0) & (X <= 1)).all(axis=0))
        return np.full(X.shape[1], self.input == "probability")

    def _check_probabilities(
        self, X: Floats, columns: NDArray[np.bool_], rows: NDArray | None = None
    ) -> None:
        """Refuse values outside [0, 1]; `rows` are the caller's numbers of the rows."""
        outside = ((X < 0) | (X > 1)) & columns
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise ValueError(
                f"column {self._column_name(column)} holds probabilities, which must "
                f"lie in [0, 1]; got {X[row, column]:g} at row "
                f"{row if rows is None else rows[row]}"
            )

    def _to_log_odds(self, X: Floats) -> Floats:
        scores = X.copy()
        columns = self.is_probability_
        scores[:, columns] = log_odds(X[:, columns], eps=self.eps)
        return scores

    def _check_n_columns(self, X: NDArray, n_features: int) -> None:
        """Refuse other columns than in `fit`, where `validate_data` cannot look."""
        if X.shape[1] != n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{n_features} features as input"
            )

    def _column_name(self, column: Any) -> str:
        names = getattr(self, "feature_names_in_", None)
        return str(column) if names is None else repr(str(names[column]))
