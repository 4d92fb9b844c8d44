"""Exact proofs of feasibility and infeasibility; standard library only, so that anyone can read it.

Every number is a `fractions.Fraction`, so nothing here rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def definiteness(matrix: Sequence[Sequence[Fraction]]) -> str:
    """Decide the definiteness of a symmetric matrix exactly, by its LDL' decomposition.

    Parameters
    ----------
    matrix : sequence of sequences of Fraction, shape (n, n)
        Symmetric.

    Returns
    -------
    {"positive definite", "singular", "indefinite"}
        "singular" is positive semidefinite with a zero eigenvalue; "indefinite" has a negative
        eigenvalue. A zero pivot is harmless exactly when the rest of its row is zero too: a
        2x2 minor with a zero on the diagonal is ``-a^2``.

    Raises
    ------
    ValueError
        When the matrix is not square or not symmetric.

    Examples
    --------
    >>> definiteness([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(1, 2)]])
    'singular'
    """
    a = [[Fraction(x) for x in row] for row in matrix]
    n = len(a)
    if any(len(row) != n for row in a) or any(
        a[i][j] != a[j][i] for i in range(n) for j in range(i)
    ):
        raise ValueError("a matrix must be square and symmetric")
    outcome = "positive definite"
    for k in range(n):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[k][k + 1 :])):
            return "indefinite"
        if pivot == 0:
            outcome = "singular"
            continue
        for i in range(k + 1, n):
            factor = a[i][k] / pivot
            for j in range(i, n):
                a[i][j] -= factor * a[k][j]
                a[j][i] = a[i][j]
    return outcome
