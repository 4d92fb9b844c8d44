"""Parts of certificates that tests write by hand."""

import copy

from feasid.certificate import BODY, FORMAT, digest


def bodies(count):
    return [[f"b{k}", symbol] for k in range(count) for symbol in BODY]


def common(parameters, **more):
    data = {"format": FORMAT, "consistency": "full", "margin": "0", "ties": [], "constraints": []}
    data |= {"robot": {"name": "one", "digest": "none"}, "parameters": parameters}
    return data | {"limit": None, "multipliers": [], "tied": []} | more


def signed(data):
    """With the digest of what it holds now."""
    return copy.deepcopy({**data, "digest": digest(data)})
