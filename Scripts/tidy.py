#!/usr/bin/env python3
"""Checks repository rules that the compiler does not. Each finding has its reason."""

import pathlib
import re
import subprocess
import sys

import modules

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = [
    (r"\btry!", r".*", "an error must be handled or thrown, not turned into a crash"),
    (r"\bfatalError\(", r".*", "bad input is an error; a broken invariant is a precondition with a sentence"),
    (r"\bDate\(\)", r".*", "time is injected: take a WallClock"),
    (r"Task\.sleep|\busleep\(|Thread\.sleep", r".*", "nothing sleeps: wait for the event, or take a clock"),
    (r"\bNSLock\b|DispatchQueue", r".*", "Mutex and actors guard state"),
    (r"^\s*(\w+ )?import (\w+ )?Foundation", r"^(Shared|Server)/", "the server starts in milliseconds: no Foundation in Shared and Server"),
    (r"\bWorldControl\b|\bControlPlane\b", r"^Server/LarderBackend/", "the backend knows the control plane only by the protocols that it declares"),
    (r"(?<![\w.])print\(", r"^(Shared|Server/Larder|ClientSDK)/", "only commands talk to the terminal"),
    (r"\"/v1\b", r"^(Shared/(?!LarderModels)|ClientSDK/(?!LarderDemo|LarderCommand))", "only LarderDemo, LarderModels and the server know the demo backend's routes"),
]
# These apply to comments and strings too.
EVERYWHERE = [
    (r"\b(TODO|FIXME|XXX)\b", "finish it, or write an issue"),
    (r"/(?:root|home|work)/", "no machine's paths in the repository"),
    (r"[«»]", "straight quotes"),
]
# Wording that a reader has to decode (plain technical English: subject, verb, object).
PHRASES = re.compile(
    r"\b(whoever|whomever|how manieth|got otherwise|nobody else's business|is told of|are told of|the hour|the dead)\b", re.IGNORECASE
)
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
FILLERS = {"a", "an", "the", "its", "of", "this", "that", "is", "with", "by", "and", "to", "for", "from", "in", "new", "makes", "creates"}


def repeats_name(comment, declaration):
    """Whether a doc comment says nothing that the declaration does not say."""
    said = {word.lower().rstrip("s") for word in WORDS.findall(comment)} - FILLERS
    named = {word.lower().rstrip("s") for word in WORDS.findall(declaration)}
    return len(said) <= 3 and said <= named


def main():
    files = subprocess.run(["git", "ls-files", "*.swift"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    findings, long = [], []
    for name in files:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        if not name.startswith("Tests/") and len(lines) > 400:
            long.append(f"{name}: {len(lines)} lines; split files over 400 lines")
        for number, line in enumerate(lines, 1):
            for pattern, why in EVERYWHERE:
                if re.search(pattern, line):
                    findings.append(f"{name}:{number}: {line.strip()[:90]}\n    {why}")
            if not name.startswith("Tests/") and "//" in line and (found := PHRASES.search(line.split("//", 1)[1])):
                findings.append(f"{name}:{number}: \"{found.group(1)}\"\n    write subject, verb, object with the field's terms")
            if line.lstrip().startswith("/// ") and number < len(lines) and not name.startswith("Tests/"):
                before = lines[number - 2].lstrip() if number > 1 else ""
                after = lines[number].lstrip()
                if not before.startswith("///") and not after.startswith(("///", "@")) and repeats_name(line, after):
                    findings.append(f"{name}:{number}: {line.strip()[:90]}\n    the comment repeats the name: delete it, or say what the name does not")
            # A comment begins at a // without a colon before it; a URL in a string does not begin one.
            code = re.split(r"(?<!:)//", line)[0]
            for pattern, scope, why in RULES:
                if re.search(scope, name) and re.search(pattern, code):
                    findings.append(f"{name}:{number}: {code.strip()[:90]}\n    {why}")
            if "@unchecked Sendable" in code:
                before = [text.strip() for text in lines[max(0, number - 8):number - 1]]
                if not any("@unchecked Sendable" in text and text.startswith("///") for text in before):
                    findings.append(f"{name}:{number}: @unchecked Sendable\n    state the proof in the doc comment directly above")
    findings += modules.check()[0]
    for line in long:
        print("note:", line)
    for line in findings:
        print(line)
    print(f"tidy: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
