"""Options of what is asked of a feasible set: is there a point, which is closest, how far is it?"""

# No "from __future__ import annotations": the annotations are read when the program runs.

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from feasid.options import forms
from feasid.options.option import Option
from feasid.options.tables import BoundOptions, SolverOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:
    ArrayLike = Any

CONSISTENCY = Option(
    "choice",
    "of every body's inertia; None full, or as the fit was asked for",
    choices=("full", "semi"),
    example="semi",
)


class CheckOptions(BoundOptions, SolverOptions, total=False):
    """What is asked of parameters that may or may not exist."""

    consistency: Annotated[Literal["full", "semi"] | None, CONSISTENCY]
    margin: Annotated[
        float,
        Option("number", "absolute margin in SI numbers on every constraint, the paper's epsilon",
               0.0, low=0.0, example="1e-6"),
    ]  # fmt: skip


class CorrectOptions(BoundOptions, SolverOptions, total=False):
    """What the closest feasible parameters are closest by, and feasible under."""

    metric: Annotated[
        Literal["euclidean", "weighted", "entropic"],
        Option("choice", "distance of the vectors, of weight @ vector, or of mass distributions",
               "euclidean", choices=("euclidean", "weighted", "entropic"), example="entropic"),
    ]  # fmt: skip
    weight: Annotated[
        ArrayLike | None,
        Option("value", "matrix (rows, nb) or (rows, n), such as the triangle of a regressor",
               needs=("metric", ("weighted",)), form=forms.MATRIX),
    ]  # fmt: skip
    around: Annotated[
        ArrayLike | None,
        Option("value", "strictly feasible parameters (n,) to measure around; None the description",
               needs=("metric", ("entropic",)), form=forms.ROW),
    ]  # fmt: skip
    consistency: Annotated[Literal["full", "semi"] | None, CONSISTENCY]
    margin: Annotated[
        float | None,
        Option("number", "absolute margin in SI numbers; None a little, in each body's units", None,
               low=0.0, example="1e-6"),
    ]  # fmt: skip


class RangeOptions(TypedDict, total=False):
    """Over which models ranges are taken."""

    level: Annotated[
        float,
        Option("number", "probability of the chi-square law whose bound is the residual budget",
               0.999, low=0.0, high=1 - 1e-9, open=True, example="0.95"),
    ]  # fmt: skip
    plausible: Annotated[
        bool,
        Option("flag", "only within what the fit believed besides its bounds: masses and shapes",
               True, example="no"),
    ]  # fmt: skip
