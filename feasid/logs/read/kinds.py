"""What kind of file a log is: the one place that looks at names and endings."""

from __future__ import annotations

from pathlib import Path

from feasid.core.files import is_folder, is_regular
from feasid.errors import InputError, SecurityError

PICKLES = (".pkl", ".pickle", ".joblib", ".npy", ".pt", ".h5", ".hdf5", ".mat")

BAG_SUFFIXES = (".mcap", ".db3")

REDUCED = ".reduced"

TEXT = (".csv", ".txt", ".tsv", ".dat", "")


def kind_of(source: str | Path) -> str:
    """The kind of a log's file: "bag", "csv", "parquet", "npz" or "reduced".

    Raises
    ------
    InputError
        Folders that are no bags, and endings that nothing reads.
    SecurityError
        Files that can hold code.
    """
    path = Path(source)
    suffixes = [s.lower() for s in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last in BAG_SUFFIXES or is_regular(path / "metadata.yaml"):
        return "bag"
    if is_folder(path):
        raise InputError(f"{path}: a folder, expected a file", path=str(path))
    if last in PICKLES:
        raise SecurityError(
            f"{path}: files of kind {last} are not read, they can hold code; save the arrays with "
            "numpy.savez or as CSV or Parquet",
            path=str(path),
        )
    if last == ".gz":
        last = suffixes[-2] if len(suffixes) > 1 else ""
    if last in TEXT:
        return "csv"
    kinds = {".parquet": "parquet", ".pq": "parquet", ".npz": "npz", REDUCED: "reduced"}
    if last in kinds:
        return kinds[last]
    known = ".csv .tsv .txt .parquet .npz .mcap, folders of ROS 2 bags, .reduced"
    raise InputError(f"{path}: no reader for {last!r} (known: {known})", path=str(path))
