"""Warnings and errors raised by skcalfair."""

__all__ = ["GroupScoringError", "NotEstimableError", "SmallSampleWarning"]


class NotEstimableError(ValueError):
    """A quantity cannot be estimated from the rows given.

    The message names the reason, for example one class only or separable data.

    Examples
    --------
    >>> from skcalfair.exceptions import NotEstimableError
    >>> issubclass(NotEstimableError, ValueError)
    True
    """


class GroupScoringError(BaseException):
    """A group scorer met data on which groups cannot be compared.

    Raised when fewer than two groups (or not all of the expected ones) can be
    evaluated in the rows of a split. Every candidate of a search shares those rows,
    so the comparison is impossible for all of them.

    Notes
    -----
    This deliberately derives from `BaseException`. The searches and cross-validation
    functions of scikit-learn turn every `Exception` of a scorer into ``error_score``
    (NaN by default); with NaN for every candidate a search would return the first
    candidate as the best one. This error stops the search instead.

    Examples
    --------
    >>> from skcalfair.exceptions import GroupScoringError
    >>> issubclass(GroupScoringError, Exception)
    False
    """


class SmallSampleWarning(UserWarning):
    """An estimate is known to be unreliable because of too few rows.

    Examples
    --------
    >>> from skcalfair.exceptions import SmallSampleWarning
    >>> issubclass(SmallSampleWarning, UserWarning)
    True
    """
