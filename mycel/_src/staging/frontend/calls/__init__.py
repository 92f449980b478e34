"""Calls from interpreted code: functions, native code and methods, and attribute access."""
