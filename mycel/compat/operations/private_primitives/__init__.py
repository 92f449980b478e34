"""The work of MindSpore's private primitives by topic, and why some are not served."""
