"""Networks as ONNX models: the nodes, values and patterns of operators that are written."""
