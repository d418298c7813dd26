#!/usr/bin/env python3
"""Throws mutated requests at a server on this machine, bounded in number and time, and checks that it lives on."""

import random
import re
import socket
import subprocess
import sys
import time

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
SEEDS = [
    b"GET /v1/feed?limit=3 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer dev-ana\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"text\":\"hi\"}",
    b"POST /v1/likes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\n{\"a\":\r\n0\r\nX: y\r\n\r\n",
    b"GET /v1/live HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x85abcdhello",
]


def main():
    print("seed", SEED)
    rng = random.Random(SEED)
    server = subprocess.Popen([".build/release/larder-server", "--seed", "1", "--port", "0"], stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)", server.stdout.readline().split("//")[1]).group(1))
    count, end = 0, time.monotonic() + 60
    try:
        while time.monotonic() < end and count < 20_000:
            data = bytearray(rng.choice(SEEDS))
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                action = rng.randrange(4)
                if action == 0:
                    data[at] = rng.randrange(256)
                elif action == 1:
                    del data[at:at + rng.randrange(1, 9)]
                elif action == 2:
                    data[at:at] = data[rng.randrange(len(data)):][:rng.randrange(1, 40)]
                else:
                    data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
                if not data:
                    data = bytearray(b"\r\n")
            with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                try:
                    while peer.recv(65536):
                        pass
                except (TimeoutError, ConnectionResetError):
                    pass
            count += 1
            assert server.poll() is None, f"the server died after {bytes(data)!r}"
        with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
            peer.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert b"200 OK" in peer.recv(1000)
        print(f"{count} mutated requests, and the server is well")
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
