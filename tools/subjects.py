"""Check the subjects of commits since the last tag, or of the last ten where there is no tag.

    python tools/subjects.py

A subject has at most 72 characters and says what changed: it begins with a capital letter and ends
without a full stop, and history is linear, without merges. Prints what is wrong, and exits with 1.
"""

from __future__ import annotations

import subprocess
import sys

LONGEST = 72


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def wrong(subject: str, parents: int) -> str:
    """Return what is wrong with a subject, or nothing."""
    if parents > 1:
        return "a merge; rebase instead"
    if len(subject) > LONGEST:
        return f"{len(subject)} characters; at most {LONGEST}"
    if not subject[:1].isupper() or subject.endswith("."):
        return "begins with a capital letter and has no full stop"
    return ""


def main() -> int:
    if subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True).returncode:
        print("no history here: no subjects to check")
        return 0
    tags = git("tag", "--merged", "HEAD", "--sort=-creatordate").split()
    since = [f"{tags[0]}..HEAD"] if tags else ["--max-count=10", "HEAD"]
    found = 0
    for line in git("log", "--format=%h%x00%P%x00%s", *since).splitlines():
        commit, parents, subject = line.split("\0")
        reason = wrong(subject, len(parents.split()))
        if reason:
            print(f"{commit} {subject!r}: {reason}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
