"""All kinds of inputs, by the names that the tables give them."""

from . import commands, kinds

KINDS = {
    "urdf": kinds.urdf,
    "mjcf": kinds.mjcf,
    "sidecar": kinds.sidecar,
    "csv": kinds.csv,
    "npz": kinds.npz,
    "parquet": kinds.parquets,
    "mcap": kinds.mcap,
    "bag database": kinds.database,
    "bag folder": kinds.bag_folder,
    "reduced": kinds.reduced,
    "saved fit": kinds.saved,
    "online fit": kinds.online,
    "certificate": kinds.certificate,
    "command": commands.command,
}
"""What makes a kind, given a folder for its seeds."""
