#!/usr/bin/env python3
"""Rules of the repository that no compiler knows. Each finding says why."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = [
    (r"\btry!", r".*", "an error must be handled or thrown, not turned into a crash"),
    (r"\bfatalError\(", r".*", "bad input is an error; a broken invariant is a precondition with a sentence"),
    (r"\bDate\(\)", r".*", "time is injected: take a WallClock"),
    (r"Task\.sleep|\busleep\(|Thread\.sleep", r".*", "nothing sleeps: wait for the event, or take a clock"),
    (r"\bNSLock\b|DispatchQueue", r".*", "Mutex and actors guard state"),
    (r"^\s*(\w+ )?import (\w+ )?Foundation", r"^(Shared|Server)/", "the server starts in milliseconds: no Foundation in Shared and Server"),
    (r"import Larder(Server|Engine|Testing)?\s*$", r"^Shared/", "Shared knows neither server nor SDK"),
    (r"import Larder(Server)?$", r"^Server/Engine/", "the engine knows nothing of the domain"),
    (r"import Larder(Server|Engine)\b", r"^ClientSDK/Larder/", "the SDK knows nothing of our server"),
    (r"\.core\b|\bsteps\.append|\b(CacheCore|EntityDraft|EventHub|Mailbox|OutboxOperation)\b", r"^ClientSDK/Larder/Features/", "features use only what is public: what they need, others' features need"),
    (r"(?<![\w.])print\(", r"^(Shared|Server/Engine|Server/Backend|ClientSDK)/", "only commands talk to the terminal"),
]
# These are looked for in comments and strings too.
EVERYWHERE = [
    (r"\b(TODO|FIXME|XXX)\b", "finish it, or write an issue"),
    (r"/(?:root|home|work)/", "no machine's paths in the repository"),
]


def main():
    files = subprocess.run(["git", "ls-files", "*.swift"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    findings, long = [], []
    for name in files:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        if not name.startswith("Tests/") and len(lines) > 400:
            long.append(f"{name}: {len(lines)} lines; a file over 400 is asking to be two")
        for number, line in enumerate(lines, 1):
            for pattern, why in EVERYWHERE:
                if re.search(pattern, line):
                    findings.append(f"{name}:{number}: {line.strip()[:90]}\n    {why}")
            # A comment begins at // that no colon precedes: what follows a URL in a string is still code.
            code = re.split(r"(?<!:)//", line)[0]
            for pattern, scope, why in RULES:
                if re.search(scope, name) and re.search(pattern, code):
                    findings.append(f"{name}:{number}: {code.strip()[:90]}\n    {why}")
            if "@unchecked Sendable" in code:
                before = [text.strip() for text in lines[max(0, number - 8):number - 1]]
                if not any("@unchecked Sendable" in text and text.startswith("///") for text in before):
                    findings.append(f"{name}:{number}: @unchecked Sendable\n    prove it in the comment above")
    for line in long:
        print("note:", line)
    for line in findings:
        print(line)
    print(f"tidy: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
