"""One module a subject; `tests.fuzz.harness` says what it holds."""
