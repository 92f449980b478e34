"""Elementary and special functions as LLVM IR."""
