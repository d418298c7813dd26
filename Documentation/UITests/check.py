#!/usr/bin/env python3
"""Clients of other makers over https: each sees the faults of TLS that it is written for. Missing ones are left out.

usage: Documentation/UITests/check.py LARDER_SERVER

Starts a server with an authority of its own in a temporary directory. curl, Python's ssl, headless Chromium, and Java (with keytool) meet
a correct certificate, a wrong one, and a handshake that is cut. Only the standard library of Python is used.
"""
import base64, hashlib, importlib.util, json, os, pathlib, re, shutil, socket, ssl, subprocess, sys, tempfile, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULTS = {
    "certificate": {"action": {"type": "certificate", "fault": "expired"}},
    "cut": {"stage": "handshake", "at": 100, "action": {"type": "close"}},
    "stalled": {"stage": "handshake", "action": {"type": "never"}},
}


class Server:
    def __init__(self, program, directory):
        self.directory = directory
        environment = dict(os.environ, XDG_DATA_HOME=directory, LARDER_FIXTURES=str(ROOT / "Fixtures"))
        self.process = subprocess.Popen([program, "--tls", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", line).group(1))
        self.pem = os.path.join(directory, "larder.pem")
        subprocess.run([program, "certificate", "--output", self.pem], env=environment, check=True, stdout=subprocess.DEVNULL)

    def control(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/_larder{path}", data, method=method)
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read() or b"null")

    def set(self, name, host="phone.localhost"):
        self.control("DELETE", "/faults")
        if name:
            self.control("POST", "/faults", {"id": name, "match": {"host": host}, **FAULTS[name]})

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def expect(client, fault, found, wanted):
    if found != wanted:
        raise SystemExit(f"{client}, {fault or 'no fault'}: {found} instead of {wanted}")
    print(f"{client}: {fault or 'no fault'}: {found}")


def curl(server):
    for fault, wanted in [(None, 0), ("certificate", 60), ("cut", 35), ("stalled", 28)]:
        server.set(fault)
        command = ["curl", "-s", "-o", os.devnull, "--cacert", server.pem, f"https://phone.localhost:{server.port}/v1/feed"]
        command[1:1] = ["--max-time", "1" if fault == "stalled" else "30"]
        expect("curl", fault, subprocess.run(command).returncode, wanted)


def python(server):
    trust = ssl.create_default_context(cafile=server.pem)
    for fault, wanted in [(None, "200"), ("certificate", "SSLCertVerificationError"), ("cut", "SSLEOFError"), ("stalled", "TimeoutError")]:
        server.set(fault)
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=1 if fault == "stalled" else 30) as plain:
                with trust.wrap_socket(plain, server_hostname="phone.localhost") as connection:
                    connection.sendall(b"GET /v1/feed HTTP/1.1\r\nHost: phone.localhost\r\nConnection: close\r\n\r\n")
                    found = connection.recv(12).decode().split()[1]
        except OSError as error:
            found = type(error).__name__
        expect("Python", fault, found, wanted)


def chromium(server, program):
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "Scripts" / "dashboard-check.py")
    dashboard = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dashboard)
    key = subprocess.run(["openssl", "x509", "-in", server.pem, "-pubkey", "-noout"], check=True, capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, check=True, capture_output=True).stdout
    trusted = base64.b64encode(hashlib.sha256(der).digest()).decode()
    # The hash makes Chromium accept anything that the authority has signed: what it must reject comes from another authority.
    FAULTS["certificate"]["action"]["fault"] = "unknownAuthority"
    for fault, wanted in [(None, True), ("certificate", False), ("cut", False)]:
        server.set(fault)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            page = dashboard.Chromium(program, profile, ["--ignore-certificate-errors-spki-list=" + trusted])
            try:
                result = page.call("Page.navigate", url=f"https://phone.localhost:{server.port}/v1/feed?limit=1")
                page.wait("document.readyState === 'complete'", "the page")
                found = "errorText" not in result and page.run("document.body.innerText.includes('\"items\"')")
            finally:
                page.close()
        expect("Chromium", fault, found, wanted)


JAVA = """
import java.net.URI;
import java.net.http.*;
class Ask {
    public static void main(String[] words) throws Exception {
        try {
            var request = HttpRequest.newBuilder(URI.create(words[0])).version(HttpClient.Version.HTTP_1_1).build();
            System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
        } catch (java.io.IOException error) { System.out.println(error.getClass().getSimpleName()); }
    }
}
"""


def java(server):
    store, source = os.path.join(server.directory, "larder.p12"), os.path.join(server.directory, "Ask.java")
    pathlib.Path(source).write_text(JAVA)
    subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "larder", "-file", server.pem, "-keystore", store,
                    "-storepass", "changeit"], check=True, capture_output=True)
    for fault, wanted in [(None, "200"), ("certificate", "SSLHandshakeException"), ("cut", "SSLHandshakeException")]:
        # Java asks the system for the address, and not every system knows all names under localhost.
        server.set(fault, "localhost")
        command = ["java", f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit", source,
                   f"https://localhost:{server.port}/v1/feed"]
        expect("Java", fault, subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), wanted)


def main():
    with tempfile.TemporaryDirectory() as directory:
        server = Server(sys.argv[1], directory)
        try:
            python(server)
            if shutil.which("curl"):
                curl(server)
            program = shutil.which("chromium") or shutil.which("google-chrome")
            if program and shutil.which("openssl"):
                chromium(server, program)
            if shutil.which("javac") and shutil.which("keytool"):
                java(server)
        finally:
            server.stop()


main()
