#!/usr/bin/env python3
"""Measures the client over http and https: nginx serves a file of 8,800 bytes, and URLSession and curl do the same.

    swift build -c release --package-path Benchmarks/transport && python3 Benchmarks/transport/bench.py

Needs nginx, openssl and curl. Prints the median, the lowest and the highest of the rounds. The server has one core, the client the other.
"""

import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CLIENT = os.environ.get("BENCH_CLIENT", str(HERE / ".build/release/transport-benchmark"))
ROUNDS = int(os.environ.get("BENCH_RUNS", "9"))
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "2000"))
PORTS = {"http": 18480, "https": 18443}
NGINX = """
worker_processes 1; daemon off; pid {place}/pid; error_log {place}/error.log;
events {{}}
http {{
  access_log off; keepalive_requests 100000000; types {{ }} default_type application/json;
  client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/f;
  uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
  server {{
    listen 127.0.0.1:{http}; listen 127.0.0.1:{https} ssl; root {place};
    ssl_certificate {place}/cert.pem; ssl_certificate_key {place}/key.pem; ssl_protocols TLSv1.3;
    location /once {{ alias {place}/page; keepalive_timeout 0; }}
  }}
}}
"""


def pinned(core, *command):
    return (["taskset", "-c", str(core)] if shutil.which("taskset") and os.cpu_count() > 1 else []) + list(command)


def middle(values):
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} – {max(values):,.0f})"


def curl(place, url, count, *options):
    """Requests a second of one curl, its start included."""
    start = time.monotonic()
    trust = ["--cacert", f"{place}/cert.pem", *options]
    subprocess.run(pinned(1, "curl", "-s", "-f", *trust, "-o", "/dev/null", f"{url}?[1-{count}]"), check=True)
    return count / (time.monotonic() - start)


def main():
    missing = [name for name in ("nginx", "openssl", "curl") if not shutil.which(name)]
    if missing or not pathlib.Path(CLIENT).exists():
        sys.exit(f"missing: {', '.join(missing) or CLIENT}\n{__doc__}")
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        pathlib.Path(place, "page").write_bytes(b"x" * 8_800)
        pathlib.Path(place, "nginx.conf").write_text(NGINX.format(place=place, **PORTS))
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", f"{place}/key.pem", "-out", f"{place}/cert.pem"]
        name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
        subprocess.run(["openssl", "req", "-x509", "-nodes", *key, *name], check=True, stderr=subprocess.DEVNULL)
        server = subprocess.Popen(pinned(0, "nginx", "-p", place, "-c", f"{place}/nginx.conf"))
        try:
            for port in PORTS.values():
                while True:
                    try:
                        socket.create_connection(("127.0.0.1", port)).close()
                        break
                    except OSError:
                        time.sleep(0.02)
            urls = {scheme: f"{scheme}://127.0.0.1:{port}" for scheme, port in PORTS.items()}
            settings = {
                "LARDER_BENCHMARK_ROOTS": f"{place}/cert.pem",
                "LARDER_BENCHMARK_ROUNDS": str(ROUNDS), "LARDER_BENCHMARK_REQUESTS": str(REQUESTS),
            }
            pages = [f"{url}/page" for url in urls.values()]
            subprocess.run(pinned(1, CLIENT, *pages), check=True, env={**os.environ, **settings})
            few = max(1, REQUESTS // 10)
            rows = {
                "http, curl": ("http", "page", REQUESTS), "https, curl": ("https", "page", REQUESTS),
                "http, curl, new connections": ("http", "once", few),
                "https, curl, new connections, resumed": ("https", "once", few),
                "https, curl, new connections, full handshake": ("https", "once", few, "--no-sessionid"),
            }
            rates = {name: [] for name in rows}
            for _ in range(ROUNDS):
                for name, (scheme, path, count, *options) in rows.items():
                    rates[name].append(curl(place, f"{urls[scheme]}/{path}", count, *options))
            for name, found in rates.items():
                print(f"| {name} | {middle(found)} | – |")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
