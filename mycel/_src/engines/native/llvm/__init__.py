"""LLVM: from its intermediate representation (IR) to callable addresses."""
