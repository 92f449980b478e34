# Programs for interpreters that have MindSpore or TensorFlow.
collect_ignore_glob = ["make_*.py"]
