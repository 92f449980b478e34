"""How imports of `mindspore` and `mindspore_gs` are found, and which modules answer them."""
