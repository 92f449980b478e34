"""Specialisation of staged graphs: guards, snapshots, and sizes and numbers that vary."""
