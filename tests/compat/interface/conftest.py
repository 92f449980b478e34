"""Programs for both packages, and what asks MindSpore, are no modules of tests."""

collect_ignore_glob = ["programs/[a-z]*.py", "ask*.py"]
