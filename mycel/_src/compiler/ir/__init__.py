"""The intermediate representation: types, symbolic dimensions and the immutable graph."""
