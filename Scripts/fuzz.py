#!/usr/bin/env python3
"""Fuzzes one parser of foreign bytes with libFuzzer and the address sanitizer, or a running server with mutated requests.

    Scripts/fuzz.py TARGET [--minutes N] [--seed N] [--jobs N]     `all` runs the targets one after the other
    Scripts/fuzz.py TARGET --input FILE                            repeats one input
    Scripts/fuzz.py                                                lists the targets

Inputs that increase the coverage are kept in .build/fuzz-corpus, and inputs that end the process in .build/fuzz-findings. Exits with 1
if there is a finding.
"""

import argparse
import base64
import gzip
import os
import pathlib
import re
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "Tests/Fuzzing"
SCRATCH = ROOT / ".build/fuzz"
BINARY = SCRATCH / "release/fuzz"
SERVER = "server"
# Larger inputs for what has a container around it.
LENGTHS = {"png": 16_384, "jpeg": 16_384, "deflate": 65_536, "fixtures": 8_192, "database": 512}
DICTIONARIES = {
    **dict.fromkeys(["json", "control", "recording", "fixtures", "rows"], "json"),
    **dict.fromkeys(["http-request", "http-response", "chunked", "handshake", "fields", "dates", "url"], "http"),
}
MEGABYTES, SECONDS = 2_048, 10


def targets():
    return sorted(re.findall(r'"([a-z-]+)": fuzz', (FOLDER / "Fuzz.swift").read_text(encoding="utf-8")))


def build():
    # The compiler heeds only the last `-sanitize=`, and SwiftPM passes its two in any order: the list makes it both.
    command = ["swift", "build", "-c", "release", "--sanitize", "fuzzer", "--sanitize", "address", "--product", "fuzz",
               "--scratch-path", SCRATCH, "-Xswiftc", "-sanitize=fuzzer,address", "-Xswiftc", "-enable-testing"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "LARDER_FUZZING": "1"}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in process.stdout:
        # The linker warns once for every entry point of the sanitizer.
        if "Cannot export local symbol" not in line:
            print(line, end="", flush=True)
    if process.wait() != 0:
        sys.exit("The fuzz targets were not built.")


def seeds(target, folder):
    """Writes the first inputs: those of `Tests/Fuzzing/Seeds`, and what the repository's own fixtures give."""
    found = {}
    for path in sorted((FOLDER / "Seeds").glob(f"{target}.*")):
        # Several inputs in one file are separated by a line of dashes. Escapes make other bytes than UTF-8 readable.
        for index, part in enumerate(path.read_bytes().rstrip(b"\n").split(b"\n----\n")):
            found[f"{path.stem}-{index}"] = part.decode("unicode_escape").encode("latin-1") if path.suffix == ".esc" else part
    if target in ("png", "jpeg"):
        lines = (ROOT / f"Tests/LarderImagesTests/Fixtures/{target}.txt").read_text(encoding="utf-8").splitlines()
        for line in lines:
            name, _, _, data = line.split(" ")[:4]
            found[name] = base64.b64decode(data)
    if target in ("inflate", "content", "deflate"):
        text = (ROOT / "README.md").read_bytes()
        for size in (0, 1, 100, 2_000):
            part = text[:size]
            raw = zlib.compressobj(9, zlib.DEFLATED, -15)
            forms = [gzip.compress(part), zlib.compress(part), raw.compress(part) + raw.flush()]
            for index, data in enumerate(forms if target != "deflate" else [part]):
                found[f"{size}-{index}"] = bytes([min(index, 1)]) + data if target == "content" else data
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in found.items():
        if len(data) <= LENGTHS.get(target, 4_096):
            (folder / name).write_bytes(data)


def run(target, options):
    corpus, findings = ROOT / ".build/fuzz-corpus" / target, ROOT / ".build/fuzz-findings"
    findings.mkdir(parents=True, exist_ok=True)
    first = ROOT / ".build/fuzz-seeds" / target
    seeds(target, first)
    corpus.mkdir(parents=True, exist_ok=True)
    # Leaks are not looked for: the runtime keeps type metadata for ever. The backtracer of the runtime would delay each finding.
    environment = {**os.environ, "LARDER_FUZZ_TARGET": target, "SWIFT_BACKTRACE": "enable=no",
                   "ASAN_OPTIONS": "detect_leaks=0:symbolize=0:" + os.environ.get("ASAN_OPTIONS", "")}
    limits = [f"-rss_limit_mb={MEGABYTES}", f"-timeout={SECONDS}", f"-max_len={LENGTHS.get(target, 4_096)}"]
    if options.input:
        return subprocess.run([BINARY, *limits, options.input], env=environment, check=False).returncode != 0
    command = [BINARY, *limits, f"-max_total_time={int(options.minutes * 60)}", "-print_final_stats=1", f"-seed={options.seed}",
               f"-artifact_prefix={findings}/{target}-", corpus, first]
    if target in DICTIONARIES:
        command.insert(1, f"-dict={FOLDER}/Dictionaries/{DICTIONARIES[target]}.dict")
    output = subprocess.run(command, env=environment, check=False, text=True, errors="replace",
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=options.minutes * 60 + 300)
    stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", output.stdout))
    last = (re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", output.stdout) or [("?", "?", "?")])[-1]
    print(f"{target}: {stats.get('number_of_executed_units', '?')} executions, {last[0]} edges, {last[1]} features, "
          f"{last[2]} inputs, {stats.get('peak_rss_mb', '?')} MB, seed {options.seed}", flush=True)
    if "Is the code instrumented for coverage?" in output.stdout:
        print("The code is not instrumented for coverage, so this run has looked for nothing.")
        return True
    if output.returncode == 0:
        return False
    kept = [line for line in output.stdout.splitlines()
            if re.search(r"Finding|Fatal|ERROR|SUMMARY|Test unit|^    [^#\s]", line)]
    print("\n".join(kept[:20]))
    stored = re.search(r"Test unit written to (\S+)", output.stdout)
    print(f"Repeat it: python3 Scripts/fuzz.py {target} --input {stored.group(1) if stored else 'FILE'}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--input", help="repeats one input instead")
    parser.add_argument("--skip-build", action="store_true")
    options = parser.parse_args()
    known = targets()
    if options.target == SERVER:
        subprocess.run(["swift", "build", "-c", "release", "--product", "larder-server"], cwd=ROOT, check=True)
        return subprocess.run([sys.executable, ROOT / "Scripts/fuzz-http.py", str(options.seed), "--seconds",
                               str(options.minutes * 60)], cwd=ROOT, check=False).returncode
    if options.target != "all" and options.target not in known:
        print("The targets are all, server (mutated requests to larder-server), " + ", ".join(known) + ".")
        print("For example: make fuzz TARGET=json MINUTES=5")
        return 0 if not options.target else 2
    if not options.skip_build:
        build()
    chosen = known if options.target == "all" else [options.target]
    return 1 if sum([run(target, options) for target in chosen]) else 0


if __name__ == "__main__":
    sys.exit(main())
