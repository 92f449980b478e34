"""Eight devices on the processor, which jax makes when it starts: after the tests are collected."""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
