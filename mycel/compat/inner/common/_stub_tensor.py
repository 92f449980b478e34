"""`mindspore.common._stub_tensor`: the class of results that are not computed yet, of which there
are none.
"""

from __future__ import annotations

__all__: list[str] = []


class StubTensor:
    """A class without instances among results: `isinstance` of it is False for every tensor."""
