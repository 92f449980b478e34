"""Summaries of a training run for TensorBoard."""

from mycel.train.summary.record import SummaryRecord as SummaryRecord
