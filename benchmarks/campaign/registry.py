"""All kinds of inputs, by the names that the tables give them."""

from . import commands, kinds

KINDS = {
    "urdf": kinds.urdf,
    "mjcf": kinds.mjcf,
    "sidecar": kinds.sidecar,
    "csv": kinds.csv,
    "npz": kinds.npz,
    "parquet": kinds.parquets,
    "matlab": kinds.matlab,
    "hdf5": kinds.hdf5,
    "usd": kinds.usd,
    "mcap": kinds.mcap,
    "bag database": kinds.database,
    "bag folder": kinds.bag_folder,
    "reduced": kinds.reduced,
    "saved fit": kinds.saved,
    "fleet": kinds.fleet,
    "store": kinds.store,
    "online fit": kinds.online,
    "certificate": kinds.certificate,
    "command": commands.command,
}
"""What makes a kind, given a folder for its seeds."""
