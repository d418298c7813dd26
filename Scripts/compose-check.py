#!/usr/bin/env python3
"""Runs what docker-compose.yml and Server/Dockerfile say, as processes, and checks what they refer to. Needs no daemon.

    python3 Scripts/compose-check.py .build/debug/larder-server

- The stages, sources and commands of the Dockerfile exist; the targets of the compose file are stages, its ports are exposed.
- The server starts with the command of the image and with that of the compose file, on a free port and with a directory for /data.
- The health check succeeds beside it and fails without it; the control plane takes the documented token only.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FINDINGS = []


def check(holds, message):
    if not holds:
        FINDINGS.append(message)


def instructions(text):
    """The instructions of a Dockerfile: (name, arguments) with continued lines joined."""
    lines = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text)).splitlines()
    return [line.split(None, 1) for line in lines if line.strip()]


def check_files(dockerfile, compose):
    stages = [arguments.split()[-1] for name, arguments in dockerfile if name == "FROM"]
    for name, arguments in dockerfile:
        check(name in "FROM RUN WORKDIR COPY USER VOLUME EXPOSE HEALTHCHECK ENTRYPOINT CMD".split(), f"unknown instruction {name}")
        source = re.match(r"--from=(\S+)", arguments) if name == "COPY" else None
        if source:
            check(source[1] in stages, f"COPY --from={source[1]} names no stage")
        if name == "RUN" and "make " in arguments:
            targets = re.findall(r"make ([a-z]+)", re.sub(r"install -y.*?(&&|$)", "", arguments))
            makefile = (ROOT / "Makefile").read_text()
            for target in targets:
                check(f"\n{target}:" in makefile, f"make {target} is no target")
    for target in re.findall(r"target: (\S+)", compose):
        check(target in stages, f"the target {target} is no stage")
    for path in re.findall(r"dockerfile: (\S+)", compose):
        check((ROOT / path).is_file(), f"{path} is missing")
    exposed = {arguments for name, arguments in dockerfile if name == "EXPOSE"}
    for address, port in re.findall(r'"([\d.]+):\d+:(\d+)"', compose):
        check(address == "127.0.0.1" and port in exposed, f"the port {port} on {address} is not exposed on loopback")
    check(any(name == "USER" for name, _ in dockerfile[-7:]), "the image runs as root")


def serve(server, arguments, health, token):
    """Starts the server with the arguments of an image, asks it as the image does, and stops it."""
    with tempfile.TemporaryDirectory() as data:
        command = [word.replace("/data", data) for word in arguments]
        process = subprocess.Popen(
            [server, "--port", "0", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ, LARDER_CONTROL_TOKEN="")
        )
        try:
            url = None
            for line in process.stdout:
                found = re.search(r"http://[^\s]*:(\d+)", line)
                if found:
                    url = f"http://127.0.0.1:{found[1]}"
                    break
            check(url, f"{arguments} does not start")
            if not url:
                return
            probe = [server, *[word.replace("http://127.0.0.1:8080", url) for word in health[1:]]]
            check(probe[-1] == url, f"the health check {health} does not ask port 8080 of its container")
            check(subprocess.run(probe).returncode == 0, f"{health} fails beside {arguments}")
            control = [server, "worlds", "--server", url]
            quiet = dict(capture_output=True, text=True, env=dict(os.environ, LARDER_CONTROL_TOKEN=""))
            check(subprocess.run(control, **quiet).returncode == 1, f"{arguments}: the control plane takes no token")
            if token:
                allowed = subprocess.run([*control, "--control-token", token], **quiet)
                check(allowed.returncode == 0, f"{arguments}: the token {token} is rejected: {allowed.stderr}")
            check((pathlib.Path(data) / "larder.sqlite").is_file(), f"{arguments} stores nothing below /data")
        finally:
            process.send_signal(signal.SIGTERM)
            check(process.wait(timeout=60) == 0, f"{arguments} does not stop")
        check(subprocess.run(probe, capture_output=True).returncode == 1, "the health check succeeds without a server")


def main():
    server = str(pathlib.Path(sys.argv[1]).resolve())
    dockerfile = instructions((ROOT / "Server/Dockerfile").read_text())
    compose = (ROOT / "docker-compose.yml").read_text()
    check_files(dockerfile, compose)
    last = dict(dockerfile)
    health = json.loads(last["HEALTHCHECK"].split(" CMD ")[1])
    check(json.loads(last["ENTRYPOINT"]) == [health[0]], "the health check is another command than the server")
    serve(server, json.loads(last["CMD"]), health, None)
    command = re.search(r'command: (\["--host".*\])', compose)[1]
    command = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", command)
    arguments = json.loads(command)
    serve(server, arguments, health, arguments[arguments.index("--control-token") + 1])
    for finding in FINDINGS:
        print(f"compose-check: {finding}")
    sys.exit(1 if FINDINGS else 0)


main()
