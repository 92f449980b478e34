"""Export to ONNX: the writer, the rules of primitives, and patterns of operators."""
