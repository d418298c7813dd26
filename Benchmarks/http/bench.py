#!/usr/bin/env python3
"""Measures larder-server beside a bare epoll loop and nginx: server on one core, load on the other, contenders in turn.

Prints the median, the lowest and the highest of five runs. Contenders that are not installed are skipped with a message.
"""

import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SERVER = os.environ.get("BENCH_SERVER", str(ROOT / ".build/release/larder-server"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "3"))
RUNS = int(os.environ.get("BENCH_RUNS", "5"))
results = {}


def pinned(core, *command):
    return (["taskset", "-c", str(core)] if shutil.which("taskset") and os.cpu_count() > 1 else []) + list(command)


class Server:
    def __init__(self, *flags, command=(), core=0):
        self.process = subprocess.Popen(pinned(core, SERVER, *command, "--port", "0", *flags), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.url = re.search(r"http://[^\s,]+", self.process.stdout.readline()).group(0)
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def resident(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024

    def proportional(self):
        """Resident memory in KiB, with shared pages counted in proportion."""
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"Pss:\s+(\d+)", text).group(1))

    def get(self, path, headers={}):
        return urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers))


def wrk(url, *flags, connections=64, env=None):
    command = pinned(1, "wrk", "-t1", f"-c{connections}", f"-d{SECONDS}", *flags, url)
    text = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})}).stdout
    if "Non-2xx" in text:
        rejected = int(re.search(r"Non-2xx or 3xx responses: (\d+)", text).group(1))
        print("    not 2xx:", rejected)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))


def show(name, values, unit, digits=1):
    results[name] = {"median": statistics.median(values), "runs": values, "unit": unit}
    print(f"{name:60} {statistics.median(values):>10,.{digits}f} {unit}   ({min(values):,.{digits}f} – {max(values):,.{digits}f})")


def contend(contenders, against=None):
    """Runs the contenders in turn. `against` names the one that the others are divided by, run by run."""
    values = {name: [] for name in contenders}
    for _ in range(RUNS):
        for name, run in contenders.items():
            values[name].append(run())
    for name in contenders:
        show(name, values[name], "/s")
    for name in contenders if against else []:
        if name != against:
            ratios = [a / b for a, b in zip(values[name], values[against])]
            show(f"  {name.strip()} : {against.strip()}", ratios, "×", digits=2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pages():
    with Server() as server, tempfile.TemporaryDirectory() as scratch:
        url = server.url + "/v1/feed?limit=20"
        with socket.create_connection(("127.0.0.1", server.port)) as peer:
            peer.sendall(b"GET /v1/feed?limit=20 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
            data = b""
            while b"\r\n\r\n" not in data or len(data) < data.index(b"\r\n\r\n") + 4 + int(re.search(rb"Content-Length: (\d+)", data).group(1)):
                data += peer.recv(1 << 16)
        tag = re.search(rb"ETag: (\S+)", data).group(1).decode()
        contenders = {"feed page, repeated": lambda: wrk(url), "feed page, 304": lambda: wrk(url, "-H", f"If-None-Match: {tag}")}
        extra = []
        if shutil.which("cc"):
            reply, bare = os.path.join(scratch, "reply"), os.path.join(scratch, "bare")
            pathlib.Path(reply).write_bytes(data)
            subprocess.run(["cc", "-O2", "-o", bare, str(HERE / "bare.c")], check=True)
            bare_port = free_port()
            extra.append(subprocess.Popen(pinned(0, bare, str(bare_port), reply)))
            contenders["  bare epoll loop, same bytes"] = lambda: wrk(f"http://127.0.0.1:{bare_port}/")
        else:
            print("skipped: the bare loop (cc is not installed)")
        if shutil.which("nginx"):
            pathlib.Path(scratch, "page").write_bytes(data[data.index(b"\r\n\r\n") + 4:])
            os.chmod(scratch, 0o755)
            nginx_port = free_port()
            pathlib.Path(scratch, "nginx.conf").write_text(
                f"worker_processes 1; daemon off; pid {scratch}/pid; error_log /dev/null; events {{ worker_connections 1024; }}\n"
                f"http {{ access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000000; open_file_cache max=10;\n"
                f"client_body_temp_path {scratch}; proxy_temp_path {scratch}; fastcgi_temp_path {scratch}; uwsgi_temp_path {scratch};\n"
                f"scgi_temp_path {scratch}; server {{ listen 127.0.0.1:{nginx_port}; root {scratch}; }} }}\n")
            extra.append(subprocess.Popen(pinned(0, "nginx", "-c", f"{scratch}/nginx.conf"), stderr=subprocess.DEVNULL))
            contenders["  nginx, same body from a file"] = lambda: wrk(f"http://127.0.0.1:{nginx_port}/page")
        else:
            print("skipped: nginx (not installed)")
        time.sleep(0.5)
        print(f"page of {len(data):,} bytes with its head")
        try:
            contend(contenders, against="feed page, repeated")
        finally:
            for process in extra:
                process.terminate()
    anew()


def anew():
    """Pages that no cached reply answers: no response cache, rare cursors, and a write before every twentieth page."""
    page = "/v1/feed?limit=20"
    with Server() as kept, Server("--no-response-cache") as plain, Server("--no-response-cache", "--seed", "1", "--posts", "100000") as large:
        cursors = []
        with large.get("/v1/feed?limit=100") as reply:
            cursors.append(json.load(reply)["nextCursor"])
        while len(cursors) < 900:
            with large.get("/v1/feed?limit=100&after=" + cursors[-1]) as reply:
                cursors.append(json.load(reply)["nextCursor"])
        env = {"LARDER_CURSORS": " ".join(cursors), "LARDER_TOKEN": "dev-ana"}
        contend({"feed page, repeated": lambda: wrk(kept.url + page),
                 "feed page, built anew": lambda: wrk(plain.url + page),
                 "the same for a signed-in user with likes": lambda: wrk(plain.url + page, "-H", "Authorization: Bearer dev-ana"),
                 "built anew after a like, every twentieth request": lambda: wrk(kept.url, "-s", str(HERE / "likes.lua"), env=env),
                 "feed page out of SQLite: 900 cursors in 100,000 posts": lambda: wrk(large.url, "-s", str(HERE / "cursors.lua"), env=env)},
                against="feed page, repeated")


def control():
    """The cost of the journal, and of a thousand faults that never match, on the repeated feed page."""
    with Server() as plain, Server("--no-journal") as silent, Server() as ruled:
        faults = [{"match": {"path": f"/v1/posts/post_{n}"}, "action": {"type": "reset"}} for n in range(1, 1001)]
        urllib.request.urlopen(urllib.request.Request(ruled.url + "/_larder/faults", json.dumps({"faults": faults}).encode())).read()
        page = "/v1/feed?limit=20"
        contend({"without a journal": lambda: wrk(silent.url + page), "with a journal": lambda: wrk(plain.url + page)},
                against="without a journal")
        contend({"no faults": lambda: wrk(plain.url + page), "1,000 faults for other paths": lambda: wrk(ruled.url + page)},
                against="no faults")


def worlds():
    """The time to create, fork and reset a world over one connection, and the memory of a world."""
    with Server() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)

        def timed(method, path, body=None):
            begin = time.perf_counter()
            connection.request(method, "/_larder/worlds" + path, body)
            reply = connection.getresponse()
            reply.read()
            assert reply.status < 300, reply.status
            return (time.perf_counter() - begin) * 1000

        def tail(name, values):
            values.sort()
            show(f"{name}, median", [statistics.median(values)], "ms", digits=2)
            show(f"{name}, 99th percentile", [values[int(len(values) * 0.99) - 1]], "ms", digits=2)

        before = server.proportional()
        tail("a world made", [timed("POST", "", json.dumps({"id": f"w{n}"})) for n in range(1000)])
        show("memory of a world, of 1,000", [(server.proportional() - before) / 1000], "KiB")
        tail("a world reset", [timed("POST", f"/w{n}/reset") for n in range(1000)])
        tail("a world forked", [timed("POST", "", json.dumps({"id": f"f{n}", "from": {"fork": f"w{n}"}})) for n in range(500)])


def transfers():
    for name, flags in (("transfers, safe from power loss", []), ("transfers, safe from a crash", ["--no-power-loss-safety"])):
        with tempfile.TemporaryDirectory() as scratch, Server("--database", scratch + "/bench.sqlite", *flags) as server:
            accounts = {}
            for handle in ("ana", "ben"):
                with server.get("/v1/accounts", {"Authorization": f"Bearer dev-{handle}"}) as reply:
                    accounts[handle] = next(a for a in json.load(reply)["items"] if a["status"] == "open")
            assert accounts["ana"]["balance"]["currency"] == accounts["ben"]["balance"]["currency"]
            body = json.dumps({"fromAccountId": accounts["ana"]["id"], "toAccountId": accounts["ben"]["id"],
                               "amount": {"minorUnits": 1, "currency": accounts["ana"]["balance"]["currency"]}})
            env = {"LARDER_BODY": body, "LARDER_TOKEN": "dev-ana"}
            contend({name: lambda: wrk(server.url, "-s", str(HERE / "transfers.lua"), env=env)})


def starts():
    for path in ("/healthz", "/v1/feed"):
        values = []
        for _ in range(20):
            begin = time.perf_counter()
            with Server() as server, socket.create_connection(("127.0.0.1", server.port)) as peer:
                peer.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                assert peer.recv(100).startswith(b"HTTP/1.1 200")
                values.append((time.perf_counter() - begin) * 1000)
        show(f"start to first answer, {path}", values, "ms")
    with tempfile.TemporaryDirectory() as scratch:
        flags = ["--seed", "1", "--posts", "100000", "--database", scratch + "/large.sqlite"]
        for name, runs in (("100,000 posts made and written to a database file", 1), ("start with that file", 5)):
            values = []
            for _ in range(runs):
                begin = time.perf_counter()
                with Server(*flags) as server:
                    server.get("/v1/feed").read()
                    values.append((time.perf_counter() - begin) * 1000)
            show(name, values, "ms")
            flags = flags[4:]
    with Server() as server:
        server.get("/v1/feed").read()
        show("resident memory at rest", [server.resident()], "MB")


def sockets():
    if hasattr(os, "sched_setaffinity") and os.cpu_count() > 1:
        os.sched_setaffinity(0, {1})
    handshake = (b"GET /v1/live HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    with Server("--connection-limit", "20000") as server:
        before, peers = server.resident(), []
        try:
            for _ in range(10_000):
                peer = socket.create_connection(("127.0.0.1", server.port))
                peer.settimeout(20)
                peer.sendall(handshake)
                peers.append(peer)
        except OSError as error:
            print("stopped at", len(peers), "sockets:", error)
        for peer in peers:
            peer.recv(4096)
        show(f"{len(peers):,} idle WebSockets: resident memory", [server.resident()], "MB")
        print(f"    {(server.resident() - before) * 1024 / max(1, len(peers)):.1f} KB each")
        for peer in peers[1000:]:
            peer.close()
        values = []
        for index in range(RUNS):
            post = urllib.request.Request(server.url + "/v1/posts", json.dumps({"text": f"event {index}"}).encode(),
                                          {"Authorization": "Bearer dev-ana", "Content-Type": "application/json"})
            time.sleep(0.3)
            begin = time.perf_counter()
            urllib.request.urlopen(post).read()
            for peer in peers[:1000]:
                data = b""
                while b"event %d" % index not in data:
                    data = peer.recv(65536)
                    assert data, "a WebSocket was closed"
            values.append((time.perf_counter() - begin) * 1000)
        show("one event to 1,000 WebSockets", values, "ms")


def proxy():
    """The proxy beside nginx, each on one core, in front of the server, which shares the other core with wrk."""
    if not shutil.which("nginx"):
        return print("skipped: the proxy (nginx is not installed)")
    with Server("--no-journal", core=1) as origin, tempfile.TemporaryDirectory() as scratch:
        port = free_port()
        os.chmod(scratch, 0o755)
        pathlib.Path(scratch, "nginx.conf").write_text(
            f"worker_processes 1; daemon off; pid {scratch}/pid; error_log /dev/null; events {{ worker_connections 1024; }}\n"
            f"http {{ access_log off; tcp_nodelay on; keepalive_requests 1000000000;\n"
            f"client_body_temp_path {scratch}; proxy_temp_path {scratch}; fastcgi_temp_path {scratch}; uwsgi_temp_path {scratch};\n"
            f"scgi_temp_path {scratch}; upstream origin {{ server 127.0.0.1:{origin.port}; keepalive 64; keepalive_requests 1000000000; }}\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://origin; proxy_http_version 1.1;\n"
            f"proxy_set_header Connection \"\"; }} }} }}\n")
        nginx = subprocess.Popen(pinned(0, "nginx", "-c", f"{scratch}/nginx.conf"), stderr=subprocess.DEVNULL)
        page = "/v1/feed?limit=5"
        try:
            with Server("--no-journal", command=["proxy", "--to", origin.url]) as silent, Server(command=["proxy", "--to", origin.url]) as plain:
                urls = {"nginx": f"http://127.0.0.1:{port}", "larder-server proxy --no-journal": silent.url, "larder-server proxy": plain.url}
                contend({name: lambda url=url: wrk(url + page, connections=16) for name, url in urls.items()}, against="nginx")
        finally:
            nginx.terminate()


def tls():
    """The feed page over https beside nginx, with the same certificate and cipher: on kept connections, and with a handshake for each."""
    if not shutil.which("nginx") or not shutil.which("openssl"):
        return print("skipped: tls (nginx or openssl is not installed)")
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        certificate, key = f"{scratch}/certificate.pem", f"{scratch}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        with Server("--certificate", certificate, "--key", key) as server:
            path = "/v1/feed?limit=20"
            pathlib.Path(scratch, "page").write_bytes(server.get(path).read())
            port = free_port()
            pathlib.Path(scratch, "nginx.conf").write_text(
                f"worker_processes 1; daemon off; pid {scratch}/pid; error_log /dev/null; events {{ worker_connections 1024; }}\n"
                f"http {{ access_log off; tcp_nodelay on; keepalive_requests 1000000000; open_file_cache max=10;\n"
                f"client_body_temp_path {scratch}; proxy_temp_path {scratch}; fastcgi_temp_path {scratch}; uwsgi_temp_path {scratch};\n"
                f"scgi_temp_path {scratch}; server {{ listen 127.0.0.1:{port} ssl; ssl_protocols TLSv1.3; ssl_certificate {certificate};\n"
                f"ssl_certificate_key {key}; root {scratch}; }} }}\n")
            nginx = subprocess.Popen(pinned(0, "nginx", "-c", f"{scratch}/nginx.conf"), stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            urls = {"nginx": f"https://127.0.0.1:{port}/page", "larder-server": f"https://127.0.0.1:{server.port}{path}"}
            try:
                ciphers = {name: cipher(url) for name, url in urls.items()}
                assert len(set(ciphers.values())) == 1, ciphers
                print(f"{ciphers['nginx']}, a certificate with a key on P-256")
                for label, flags in [("https, kept", ()), ("https, new connections", ("-H", "Connection: close"))]:
                    contend({f"{label}, {name}": lambda url=url, flags=flags: wrk(url, *flags) for name, url in urls.items()},
                            against=f"{label}, nginx")
                contend({"http, kept, larder-server": lambda: wrk(server.url + path)})
            finally:
                nginx.terminate()


def cipher(url):
    """What a client negotiates that trusts everybody."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)/", url).group(1)))) as plain:
        with trust.wrap_socket(plain) as connection:
            return connection.cipher()[0]


def main():
    if not shutil.which("wrk"):
        sys.exit("The benchmarks need wrk: apt-get install wrk (and nginx-light and gcc for the comparison).")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"{cpu}, {os.cpu_count()} cores, Linux {platform.release()}, release build of {commit}; {RUNS} runs of {SECONDS} s, 64 connections")
    scenarios = {"pages": pages, "anew": anew, "control": control, "worlds": worlds, "transfers": transfers, "starts": starts, "sockets": sockets, "proxy": proxy, "tls": tls}
    for name in sys.argv[1:] or [name for name in scenarios if name != "anew"]:
        scenarios[name]()
    (ROOT / ".build/bench.json").write_text(json.dumps({"commit": commit, "cpu": cpu, "results": results}, indent=1))


if __name__ == "__main__":
    main()
