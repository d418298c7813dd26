#!/usr/bin/env python3
"""Drives the dashboard in headless Chromium by clicks and keys, and fails if it does not do what it should.

usage: Scripts/dashboard-check.py LARDER_SERVER [--shots DIRECTORY]

Starts a server of its own with fixtures, sends requests as two devices, sets a fault, moves the clock, and looks at the page as a
person would: the timeline, the comparison of two entries, the keyboard, light and dark, and the width of a phone. Only the standard
library of Python is used. `--shots` writes PNG files of each state; Documentation/images/dashboard.png is timeline-1400-light.png, reduced to
64 colours.
"""
import base64, contextlib, json, os, re, shutil, socket, struct, subprocess, sys, tempfile, time, urllib.request


class Chromium:
    """A page of a headless Chromium, over the DevTools protocol."""

    def __init__(self, program, directory, options=()):
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-port=0",
             "--user-data-dir=" + directory, *options, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = ""
        while "DevTools listening on" not in line:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("dashboard: Chromium has ended before it listened")
        port = int(re.search(r":(\d+)/", line).group(1))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as reply:
            page = next(target for target in json.load(reply) if target["type"] == "page")
        self.count = 0
        self.errors = []
        self.socket = self.connect(port, page["webSocketDebuggerUrl"].split(str(port), 1)[1])
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    @staticmethod
    def connect(port, path):
        """The client's side of the WebSocket handshake (RFC 6455)."""
        connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        if b" 101 " not in head:
            raise SystemExit("dashboard: Chromium has rejected the connection")
        return connection

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise SystemExit("dashboard: Chromium has closed the connection")
            data += part
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x81, 0xFE, size)
        if size > 65535:
            head = struct.pack("!BBQ", 0x81, 0xFF, size)
        self.socket.sendall(head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, second = self.exactly(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack("!H", self.exactly(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.exactly(8))[0]
            text += self.exactly(size)
            if first & 0x80:
                return json.loads(text)

    def call(self, method, **parameters):
        self.count += 1
        self.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = self.receive()
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(message["params"]["exceptionDetails"])[:400])
            if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.errors.append(message["params"]["entry"]["text"])
            if message.get("id") == self.count:
                if "error" in message:
                    raise SystemExit(f"dashboard: {method}: {message['error']}")
                return message["result"]

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"dashboard: {script}: {json.dumps(result['exceptionDetails'])[:400]}")
        return result["result"].get("value")

    def wait(self, script, what, seconds=15):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(script):
                return
            time.sleep(0.05)
        raise SystemExit(f"dashboard: {what}: not within {seconds} s ({script}) {'; '.join(self.errors[:3])}")

    def click(self, selector):
        """A click of the mouse in the middle of an element, which must be in sight and not covered."""
        box = self.run(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;
            e.scrollIntoView({{ block: "center" }}); const b = e.getBoundingClientRect();
            const [x, y] = [b.x + b.width / 2, b.y + b.height / 2]; const top = document.elementFromPoint(x, y);
            return {{ x, y, hit: top !== null && (e.contains(top) || top.contains(e)) }}; }})()""")
        if not box or not box["hit"]:
            raise SystemExit(f"dashboard: {selector} cannot be clicked: {box}")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box["x"], y=box["y"], button="left", clickCount=1)

    def key(self, key):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def shot(self, directory, name):
        if directory:
            data = self.call("Page.captureScreenshot", format="png")["data"]
            with open(os.path.join(directory, name + ".png"), "wb") as file:
                file.write(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        self.process.wait(10)


class Server:
    def __init__(self, program):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.program = program
        self.process = subprocess.Popen([program, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.ask("GET", "/healthz")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("dashboard: the server does not answer")

    def ask(self, method, path, body=None, device=None, fields=None):
        request = urllib.request.Request(self.base + path, method=method, data=None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        if device:
            request.add_header("Larder-Device", device)
        for name, value in (fields or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def visit(self, device):
        for path in ("/v1/feed?limit=5", "/v1/feed?limit=5", "/v1/profiles?limit=3", "/v1/feed?limit=20"):
            self.ask("GET", path, device=device)

    def close(self):
        self.process.terminate()
        self.process.wait(10)


@contextlib.contextmanager
def inspected(server):
    """The demo client beside the server's program, shown in the dashboard while it runs."""
    program = os.path.join(os.path.dirname(server.program), "larder")
    with tempfile.TemporaryDirectory(prefix="larder-client-") as directory:
        process = subprocess.Popen([program, "--server", server.base, "--directory", directory, "feed", "--live", "--inspect"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.kill()
            process.wait(10)


def check(condition, text):
    if not condition:
        raise SystemExit("dashboard: " + text)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    shots = sys.argv[sys.argv.index("--shots") + 1] if "--shots" in sys.argv else None
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        return print("dashboard: left out, because there is no Chromium")
    if shots:
        os.makedirs(shots, exist_ok=True)
    server = Server(sys.argv[1])
    directory = tempfile.mkdtemp(prefix="larder-dashboard-")
    page = Chromium(program, directory)
    try:
        drive(page, server, shots)
    finally:
        page.close()
        server.close()
        shutil.rmtree(directory, ignore_errors=True)
    print("dashboard: all checks passed")


def drive(page, server, shots):
    server.visit("phone")
    server.ask("POST", "/_larder/clock/advance", {"seconds": 400})
    page.size(1400, 900)
    page.scheme("light")
    page.call("Page.navigate", url=server.base + "/_larder/")
    page.wait("document.querySelectorAll('tr.entry').length >= 4 && document.querySelector('#state').dataset.state === 'live'",
              "the journal is shown")
    page.wait("document.querySelectorAll('#faults-set li').length > 0", "the faults are shown")
    # The page sees a fault and a jump of the clock.
    time.sleep(1.2)
    server.ask("POST", "/_larder/journeys/3g", {})
    server.visit("phone")
    server.ask("GET", "/v1/profiles?limit=3", device="tablet")
    server.ask("POST", "/_larder/clock/advance", {"seconds": 3600})
    server.visit("phone")
    page.wait("document.querySelectorAll('tr.entry').length >= 13", "new entries appear by themselves")

    page.click("#view-timeline")
    page.wait("document.querySelectorAll('#timeline .bar').length === 12", "the timeline has a bar for each request of the device")
    check(page.run("document.querySelectorAll('#timeline .group').length") == 3, "the timeline has a group for each visit")
    check(page.run("document.querySelectorAll('#timeline .break').length") == 2, "the timeline has a break for each pause")
    check(page.run("document.querySelectorAll('#timeline .fault-span').length") >= 1, "the journey is drawn in")
    page.wait("timelineMarks().some((kind) => kind.includes('clock')) && timelineMarks().some((kind) => kind.includes('fault'))".replace(
        "timelineMarks()", "[...document.querySelectorAll('#timeline .change')].map((e) => e.getAttribute('class'))"),
        "the clock's jump and the new fault are drawn in")
    page.shot(shots, "timeline-1400-light")
    page.click("#timeline .bar:nth-of-type(1) rect")
    check("#" in page.run("document.querySelector('#timeline-chosen').textContent"), "a click chooses a request")
    page.run("document.querySelector('#timeline').focus()")
    before = page.run("document.querySelector('#timeline .chosen').dataset.number")
    page.key("ArrowRight")
    after = page.run("document.querySelector('#timeline .chosen').dataset.number")
    check(int(after) != int(before), "an arrow key moves the choice")
    page.key("Enter")
    page.wait("document.querySelectorAll('tr.detail').length === 1", "Enter opens the request")
    page.shot(shots, "open-1400-light")
    page.key("Enter")

    page.click("#entries tr.entry .target")
    page.run("document.activeElement.blur()")
    page.key("j")
    first = page.run("document.activeElement.closest('tr').rowIndex")
    page.key("j")
    check(page.run("document.activeElement.closest('tr').rowIndex") != first, "j goes to the next request")
    page.key("c")
    check(page.run("document.querySelectorAll('tr.first').length") == 1, "c chooses a request for the comparison")
    page.key("j")
    page.key("c")
    page.wait("document.querySelector('#compare').open", "the second choice opens the comparison")
    check(page.run("document.querySelectorAll('#compare-table .old').length") > 0, "the comparison has differences")
    page.shot(shots, "compare-1400-light")
    page.key("Escape")
    page.run("document.querySelector('#compare').open && document.querySelector('#compare-close').click()")
    page.key("?")
    page.wait("document.querySelector('#keys').open", "? shows the keys")
    page.click("#keys-close")
    page.key("/")
    check(page.run("document.activeElement.id") == "filter", "/ goes to the filter")
    for letter in "tablet":
        page.key(letter)
    page.wait("[...document.querySelectorAll('tr.entry')].filter((row) => !row.hidden).length === 1", "the filter leaves one request")
    page.run("(() => { const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input')); f.blur(); })()")
    page.key("p")
    check(page.run("document.querySelector('#pause').textContent") == "Resume", "p pauses")
    page.key("p")

    with inspected(server):
        page.wait("document.querySelectorAll('#clients .value').length >= 1", "a client shows its values")
        page.run("document.querySelector('#part-clients').scrollIntoView()")
        page.shot(shots, "clients-1400-light")
        page.click("#clients [aria-label='Show feed']")
        page.wait("document.querySelector('#clients .text') !== null", "a value is shown on demand")
        page.click("#clients [aria-label='Invalidate feed']")
        page.wait("[...document.querySelectorAll('#clients .what span')].some((e) => e.textContent.includes('stale (invalidated)'))",
                  "the client asks again for what was invalidated")
        page.scheme("dark")
        page.size(420, 860)
        time.sleep(0.3)
        check(page.run("document.documentElement.scrollWidth <= 420"), "the page with a client is not wider than a phone")
        page.run("document.querySelector('#part-clients').scrollIntoView()")
        page.shot(shots, "clients-420-dark")
        page.size(1400, 900)
    page.wait("document.querySelector('#part-clients').hidden", "a client that has gone is not shown")
    page.scheme("dark")
    page.shot(shots, "timeline-1400-dark")
    page.size(420, 860)
    time.sleep(0.3)
    check(page.run("document.documentElement.scrollWidth <= 420"), "the page is not wider than a phone")
    page.run("document.querySelector('#part-plot').scrollIntoView()")
    page.shot(shots, "timeline-420-dark")
    page.scheme("light")
    page.shot(shots, "timeline-420-light")
    page.run("scrollTo(0, 0)")
    page.click("#view-latency")
    page.shot(shots, "latency-420-light")
    check(page.errors == [], "errors in the page: " + "; ".join(page.errors[:3]))


if __name__ == "__main__":
    main()
