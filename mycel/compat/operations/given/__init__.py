"""Functions composed by hand, for names that no public function serves with these parameters."""

from __future__ import annotations
