"""What a training run shows of itself in TensorBoard."""

from mycel.train.summary.record import SummaryRecord as SummaryRecord
