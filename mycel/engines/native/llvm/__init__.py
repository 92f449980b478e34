"""From LLVM IR to callable addresses."""
