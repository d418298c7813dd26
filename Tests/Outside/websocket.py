#!/usr/bin/env python3
"""Runs the WebSocket suite of the Autobahn project (wstest) against the server and the client, and compares with the expected results.

    Tests/Outside/websocket.py WSTEST [--server LARDER_SERVER] [--client WEBSOCKET_ECHO]

WSTEST is the path of the suite's command, which needs Python 2.7 (see README.md beside this file). The side without an executable is left
out. Compression (sections 12 and 13) is not offered by either side and is left out. Exit code 1 if a result differs from what is expected.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

LEFT_OUT = ["12.*", "13.*"]
# Messages above 1 MiB, which the server refuses with code 1009. The client of this test accepts them.
SERVER_REFUSES = {f"9.{section}.{case}" for section in (1, 2) for case in (4, 5, 6)} | {
    f"9.{section}.{case}" for section in (3, 4) for case in range(1, 10)
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def results(folder):
    """The verdict on each case: of the messages, and of how the connection was closed."""
    cases = next(iter(json.loads((folder / "index.json").read_text()).values()))
    return {name: (case["behavior"], case["behaviorClose"]) for name, case in cases.items()}


def judge(side, found, refused):
    accepted = {"OK", "INFORMATIONAL", "NON-STRICT"}
    failed = {name for name, verdicts in found.items() if not set(verdicts) <= accepted}
    basic = {name for name in found if not name.startswith("9.")}
    strict = sum("NON-STRICT" not in found[name] for name in basic - failed)
    print(f"{side}: {len(basic - failed)} of {len(basic)} cases, {strict} of them strictly; large messages: {len(found) - len(basic) - len(failed - basic)} of {len(found) - len(basic)}")
    for name in sorted(failed ^ refused):
        print(f"  {name}: {found[name]}, expected {'a failure' if name in refused else 'success'}")
    return failed == refused


def run_server(wstest, executable, folder):
    port = free_port()
    server = subprocess.Popen([executable, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        settings = {
            "outdir": str(folder),
            "servers": [{"agent": "larder-server", "url": f"ws://127.0.0.1:{port}/_larder/echo"}],
            "cases": ["*"],
            "exclude-cases": LEFT_OUT,
            "exclude-agent-cases": {},
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        subprocess.run([wstest, "-m", "fuzzingclient", "-s", folder / "settings.json"], check=True, stdout=subprocess.DEVNULL)
    finally:
        server.terminate()
        server.wait()
    return judge("server", results(folder), SERVER_REFUSES)


def run_client(wstest, executable, folder):
    port = free_port()
    settings = {
        "url": f"ws://127.0.0.1:{port}",
        "outdir": str(folder),
        "cases": ["*"],
        "exclude-cases": LEFT_OUT,
        "exclude-agent-cases": {},
        "webport": 0,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    # The suite serves its reports beside the cases as well, on a port that is free now.
    command = [wstest, "-m", "fuzzingserver", "-s", folder / "settings.json", "-w", settings["url"]]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        wait_for(port)
        subprocess.run([executable, settings["url"]], check=True, stdout=subprocess.DEVNULL)
    finally:
        server.terminate()
        server.wait()
    return judge("client", results(folder), set())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wstest")
    parser.add_argument("--server")
    parser.add_argument("--client")
    arguments = parser.parse_args()
    good = True
    for run, executable in ((run_server, arguments.server), (run_client, arguments.client)):
        if executable is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            good = run(arguments.wstest, os.path.abspath(executable), pathlib.Path(folder)) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
