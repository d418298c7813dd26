#!/usr/bin/env python3
"""Leaves many exchanges in the middle, and checks that the server then does nothing and holds nothing.

    Scripts/idle_check.py [--server PATH] [--exchanges N]

Prints the processor time of the server after its clients have left. Other scripts use `expect_idle` at their end.
"""

import argparse
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

# The share of a processor that an idle process may use, and for how long it is observed. A process may still be busy with earlier
# work, so the observation is repeated: only one that is never idle is reported.
SHARE_MAXIMUM = 0.02
WINDOW_SECONDS = 0.5
WINDOWS = 20


class Busy(Exception):
    pass


def processor_seconds(pid):
    """The processor time of all threads of a process."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
        except FileNotFoundError:
            # The thread has ended.
            pass
    return total / 1e9


def connections(pid):
    """The number of sockets of a process that do not listen."""
    listening = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}") as file:
            listening |= {line.split()[9] for line in file.readlines()[1:] if line.split()[3] == "0A"}
    count = 0
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except FileNotFoundError:
            continue
        count += bool(found and found.group(1) not in listening)
    return count


def expect_idle(pid, open_connections=0):
    """Raises `Busy` if a process uses a processor, or has more connections than its clients.

    Returns the processor time of the observed half second.
    """
    used, held = 0.0, 0
    for _ in range(WINDOWS):
        before, start = processor_seconds(pid), time.monotonic()
        time.sleep(WINDOW_SECONDS)
        used, held = processor_seconds(pid) - before, connections(pid)
        if used < SHARE_MAXIMUM * (time.monotonic() - start) and held <= open_connections:
            return used
    raise Busy(f"an idle server used {used:.3f} s of processor time in {WINDOW_SECONDS} s and has {held} connections")


def request(port, method, path, body=None):
    text = "" if body is None else json.dumps(body)
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        reply = b"".join(iter(lambda: peer.recv(65536), b""))
    head, _, content = reply.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    if status >= 300:
        raise SystemExit(f"{method} {path}: {reply.decode(errors='replace')}")
    return json.loads(content) if content else None


# The paths of exchanges that wait for 30 seconds and more, with what lets them wait.
LATENCIES = {
    "/v1/posts": {"type": "latency", "firstByte": 3_600},
    "/v1/profiles/user_1": {"type": "drip", "bytes": 1, "everySeconds": 60},
    "/v1/profiles/user_2": {"type": "bandwidth", "downBytesPerSecond": 1},
    "/v1/tasks": {"type": "latency", "body": 3_600},
    "/v1/profiles/user_4": {"type": "never"},
}


def begin(port, index, token):
    """Sends a request that will wait."""
    body = '{"held": 100000, "timeoutSeconds": 600}'
    kinds = [f"GET {path} HTTP/1.1\r\n" for path in LATENCIES] + [
        f"GET /v1/changes?wait=30&since={token} HTTP/1.1\r\n",
        "GET /v1/feed HTTP/1.1\r\n",
        f"POST /_larder/wait HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n",
    ]
    line = kinds[index % len(kinds)]
    peer = socket.create_connection(("127.0.0.1", port))
    peer.sendall((line + "Host: 127.0.0.1\r\nAuthorization: Bearer dev-ana\r\n\r\n"
                  + (body if line.startswith("POST") else "")).encode())
    return peer


def leave(peer, index):
    """Ends the sending side, closes, or resets the connection; returns it if it is still open."""
    if index % 3 == 0:
        peer.shutdown(socket.SHUT_WR)
        return [peer]
    if index % 3 == 1:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    return []


def main():
    arguments = argparse.ArgumentParser(description="Checks that a server whose clients have left does nothing.")
    arguments.add_argument("--exchanges", type=int, default=1_000)
    arguments.add_argument("--server", default=".build/release/larder-server")
    options = arguments.parse_args()
    server = subprocess.Popen([options.server, "--port", "0", "--seed", "1", "--posts", "200"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)", server.stdout.readline().split("//")[1]).group(1))
        for path, action in LATENCIES.items():
            request(port, "POST", "/_larder/faults", {"match": {"path": path}, "action": action})
        request(port, "POST", "/_larder/gates", {"id": "g", "match": {"path": "/v1/feed"}})
        token = request(port, "GET", "/v1/changes?since=now")["nextToken"]
        peers = [begin(port, index, token) for index in range(options.exchanges)]
        while request(port, "GET", "/_larder/held")["items"].__len__() < options.exchanges // (len(LATENCIES) + 3):
            time.sleep(0.01)
        half_closed = [peer for index, peer in enumerate(peers) for peer in leave(peer, index)]
        # A connection that the server ends has an end of input.
        for peer in half_closed:
            peer.settimeout(10)
            while peer.recv(65536):
                pass
        expect_idle(server.pid)
        before = processor_seconds(server.pid)
        time.sleep(2)
        used = processor_seconds(server.pid) - before
        print(f"{options.exchanges} abandoned exchanges: {1_000 * used:.1f} ms of processor time in the 2 s after them, "
              f"{connections(server.pid)} connections")
        held = request(port, "GET", "/_larder/held")["items"]
        if held:
            raise Busy(f"{len(held)} exchanges are held by a gate although their clients have left")
        return 0
    except (Busy, OSError) as finding:
        print(f"finding: {finding}")
        return 1
    finally:
        server.kill()
        for peer in locals().get("peers", []):
            peer.close()


if __name__ == "__main__":
    sys.exit(main())
