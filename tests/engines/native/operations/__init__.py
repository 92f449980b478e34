"""Tests of the operations of the native engine."""
