"""The stage, in which operations become nodes: captures, views, derivatives, symbolic sizes."""
