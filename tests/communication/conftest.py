"""Programs are run by `mycel launch`, and not collected."""

collect_ignore_glob = ["programs/*.py"]
