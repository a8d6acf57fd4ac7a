"""No sample of validation or test is in train, and none of test is in validation."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np


def digest(content: bytes | np.ndarray) -> bytes:
    """What stands for a sample where samples are compared."""
    return hashlib.blake2b(content, digest_size=16).digest()


def apart(digests: Mapping[str, Sequence[bytes]]) -> dict[str, np.ndarray]:
    """Which samples stay in each split: those that no later split has, so test keeps all."""
    kept = {}
    later: set[bytes] = set()
    for name in reversed([*digests]):
        kept[name] = np.array([key not in later for key in digests[name]], bool)
        later.update(digests[name])
    return kept
