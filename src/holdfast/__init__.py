"""Holdfast: work that must not be lost and must not be done twice.

These are the public names; everything else may change.
"""

from holdfast.runtime.app import Holdfast
from holdfast.store.ports import Tx

__all__ = ["Holdfast", "Tx"]
