#!/usr/bin/env python3
"""Sends mutated requests to a local server, and checks that it answers or closes the connection in time, does not crash, and does nothing
afterwards.

    Scripts/fuzz-http.py [SEED] [--seconds N] [--server PATH]

Each case has its own seed, which is printed with the bytes of a failed case. `Scripts/fuzz-http.py SEED --cases 1` repeats it.
"""

import argparse
import random
import re
import select
import socket
import subprocess
import sys
import time

from idle_check import Busy, connections, expect_idle

KEY = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
UPGRADE = b"Upgrade: websocket\r\nConnection: Upgrade\r\n" + KEY
SEEDS = [
    b"GET /v1/feed?limit=3 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD /v1/profiles/user_1 HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"a\", W/\"b\"\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n",
    b"POST /v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer dev-ana\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"text\":\"hi\"}",
    b"POST /v1/likes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\n{\"a\":\r\n0\r\nX: y\r\n\r\n",
    b"PATCH /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer dev-ana\r\nIf-Match: *\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n{\"bio\":\"a\"}",
    b"GET http://x/v1/changes?since=now&types=post,message HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer dev-ana\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\nGET /_larder/echo HTTP/1.0\r\n\r\n",
    b"POST /_larder/faults HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 21\r\n\r\n{\"action\":\"nothing\"}\n",
    b"GET /v1/live HTTP/1.1\r\nHost: x\r\n" + UPGRADE + b"\r\n\x81\x85abcdhello",
    b"GET /_larder/echo HTTP/1.1\r\nHost: x\r\n" + UPGRADE + b"\r\n\x01\x82abcd\x02\x03\x89\x80abcd\x80\x81abcd\x04\x88\x82abcd\x62\x8a",
]
# Tokens of the grammar, inserted whole because random bytes seldom form them.
WORDS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"%", b"%00", b"0\r\n\r\n", b"ffffffff", b"-1", b"+5", b"*",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n",
    b"Host: y\r\n", b"HTTP/1.0", b"HTTP/2.0", b"\xff\xfe", b"\x88\x80abcd", b"\x89\xfe\xff\xff", b"Range: bytes=-0\r\n",
]
# Seconds. The client ends its sending side, so the server must end the exchange within this time.
DEADLINE = 5.0
# A sound request between this many cases, on a connection that stays open: only its reply can end it.
PROBE_INTERVAL = 25
# Between this many cases the server must be idle: each case ends its sending side while something may wait.
IDLE_INTERVAL = 500
PROBE_SECONDS = 2.0


class Finding(Exception):
    pass


def mutated(seed):
    rng = random.Random(seed)
    data = bytearray(rng.choice(SEEDS))
    if rng.randrange(4) == 0:
        data += rng.choice(SEEDS)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data)) if data else 0
        action = rng.randrange(5)
        if action == 0 and data:
            data[at] = rng.randrange(256)
        elif action == 1:
            del data[at:at + rng.randrange(1, 9)]
        elif action == 2 and data:
            data[at:at] = data[rng.randrange(len(data)):][:rng.randrange(1, 40)]
        elif action == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
        else:
            data[at:at] = rng.choice(WORDS)
    return bytes(data) or b"\r\n", rng.choice([1, 7, 1 << 20])


def throw(port, data, step):
    """Sends a case in pieces, ends the sending side, and reads until the server closes."""
    end = time.monotonic() + DEADLINE
    reply = bytearray()
    peer = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
    with peer:
        peer.setblocking(False)
        poller = select.poll()
        sent, is_open = 0, True
        while True:
            wanted = select.POLLIN | (select.POLLOUT if is_open else 0)
            poller.register(peer, wanted)
            left = end - time.monotonic()
            if left <= 0 or not (events := poller.poll(left * 1000)):
                raise Finding(f"no end after {DEADLINE:.0f} s; got {bytes(reply[:200])!r}")
            event = events[0][1]
            try:
                if event & select.POLLOUT:
                    sent += peer.send(data[sent:sent + step])
                    if sent >= len(data):
                        peer.shutdown(socket.SHUT_WR)
                        is_open = False
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    piece = peer.recv(65536)
                    if not piece:
                        return bytes(reply)
                    reply += piece
            except BlockingIOError:
                pass
            except OSError:
                # The server has closed the connection before the whole case was sent.
                return bytes(reply)


def probe(port):
    """Raises a finding if a sound request has no complete reply in time."""
    end = time.monotonic() + PROBE_SECONDS
    reply = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PROBE_SECONDS) as peer:
        peer.sendall(b"GET /v1/feed?limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise Finding(f"a sound request has no complete reply after {PROBE_SECONDS:.0f} s; got {reply[:200]!r}")
            peer.settimeout(left)
            try:
                piece = peer.recv(65536)
            except TimeoutError:
                continue
            reply += piece
            head, _, body = reply.partition(b"\r\n\r\n")
            length = re.search(rb"(?im)^content-length: (\d+)", head)
            if length and len(body) >= int(length.group(1)):
                return judge(reply)
            if not piece:
                raise Finding(f"the connection of a sound request was closed; got {reply[:200]!r}")


def expect_no_connection(pid):
    """Raises a finding if the server holds a connection of a case that is over."""
    end = time.monotonic() + DEADLINE
    while held := connections(pid):
        if time.monotonic() > end:
            raise Finding(f"{held} connections are open {DEADLINE:.0f} s after their clients have left")
        time.sleep(0.01)


def judge(reply):
    """Raises a finding if the reply does not begin with a status line, or is a 500."""
    if reply and not re.match(rb"HTTP/1\.1 [1-5]\d\d ", reply):
        raise Finding(f"not a status line: {reply[:120]!r}")
    if b"HTTP/1.1 500 " in reply:
        raise Finding(f"a server error: {reply[:400]!r}")


def main():
    arguments = argparse.ArgumentParser(description="Sends mutated requests to larder-server.")
    arguments.add_argument("seed", nargs="?", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--cases", type=int, default=1_000_000)
    arguments.add_argument("--server", default=".build/release/larder-server")
    options = arguments.parse_args()
    command = [options.server, "--seed", "1", "--port", "0", "--posts", "200"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(re.search(r":(\d+)", server.stdout.readline().split("//")[1]).group(1))
    count, findings, end = 0, 0, time.monotonic() + options.seconds
    try:
        while time.monotonic() < end and count < options.cases and findings < 10:
            seed = options.seed + count
            data, step = mutated(seed)
            try:
                judge(throw(port, data, step))
                expect_no_connection(server.pid)
                if count % IDLE_INTERVAL == IDLE_INTERVAL - 1:
                    expect_idle(server.pid)
                if count % PROBE_INTERVAL == 0:
                    probe(port)
            except (Finding, Busy, OSError) as finding:
                findings += 1
                print(f"seed {seed}: {finding}\n    in pieces of {step}: {data!r}", flush=True)
            count += 1
            if server.poll() is not None:
                print(f"seed {seed}: the server died with {server.returncode}\n    in pieces of {step}: {data!r}")
                return 1
        try:
            probe(port)
            expect_idle(server.pid)
            server.terminate()
            if server.wait(20) != 0:
                raise Finding(f"the server exited with {server.returncode}")
        except (Finding, Busy, OSError, subprocess.TimeoutExpired) as finding:
            findings += 1
            print(f"at the end: {finding}")
        print(f"{count} mutated requests, first seed {options.seed}, {findings} findings")
        return 1 if findings else 0
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
