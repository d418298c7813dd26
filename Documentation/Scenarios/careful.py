"""A client that expects bad days, in 200 lines of the standard library. `test_careful.py` runs it in a unittest."""

import email.utils
import http.client
import json
import os
import random
import ssl
import time
import urllib.parse
import uuid

ATTEMPTS = 8


class Failed(Exception):
    """An answer that says no for good."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Client:
    def __init__(self, url, handle, password):
        self.base = urllib.parse.urlsplit(url)
        self.credentials = {"handle": handle, "password": password}
        self.session = None
        self.renew_at = 0
        self.connection = None
        self.cache = {}  # path -> (body, etag, fresh until)

    # One exchange on the kept connection. Raises OSError or http.client.HTTPException for a transfer that failed.
    def exchange(self, method, path, headers, data):
        if self.connection is None:
            if self.base.scheme == "https":  # an OSError in the handshake: nothing was sent, and nothing is sent without TLS
                trust = ssl.create_default_context(cafile=os.environ.get("LARDER_CA"))
                self.connection = http.client.HTTPSConnection(
                    self.base.hostname, self.base.port, timeout=5, context=trust)
            else:
                self.connection = http.client.HTTPConnection(self.base.hostname, self.base.port, timeout=5)
        try:
            self.connection.request(method, path, data, headers)
            response = self.connection.getresponse()
            body = response.read()  # IncompleteRead if fewer bytes come than were announced
        except (OSError, http.client.HTTPException, ValueError):
            self.connection.close()
            self.connection = None
            raise
        return response, body

    # Sends a request until there is an answer of the API. What is repeated must be safe to repeat: a read, an idempotent
    # method, or a request under a key.
    def call(self, method, path, body=None, headers=None, signed=True):
        data = json.dumps(body).encode() if body is not None else None
        fields = {"Content-Type": "application/json", **(headers or {})}
        for attempt in range(ATTEMPTS):
            wait = random.uniform(0.02, 0.1 * 2**attempt)
            if signed:
                fields["Authorization"] = "Bearer " + self.token()
            try:
                response, content = self.exchange(method, path, fields, data)
                if response.status == 304 or not content:
                    value = None
                elif "json" in response.getheader("Content-Type", ""):
                    value = json.loads(content)
                else:
                    raise ValueError("not an answer of the API")  # a portal or a proxy
                if response.status < 400:
                    return response, value
                if response.status == 401 and signed and (value or {}).get("type", "").endswith("token-expired"):
                    self.renew_at = 0
                    continue
                if not is_passing(response.status, value):
                    raise Failed(response.status, value)
                wait = max(wait, retry_after(response))
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(wait)
        raise TimeoutError(f"no answer to {method} {path}")

    # The access token. Its lifetime is counted on the own clock: the server's may be wrong.
    def token(self):
        if time.monotonic() >= self.renew_at:
            asked = time.monotonic()
            if self.session is None:
                _, self.session = self.call("POST", "/v1/sessions", self.credentials, signed=False)
            else:
                body = {"refreshToken": self.session["refreshToken"]}
                _, self.session = self.call("POST", "/v1/sessions/refresh", body, signed=False)
            self.renew_at = asked + self.session["expiresIn"] * 0.9
        return self.session["accessToken"]

    # Reads through a cache (RFC 9111): fresh entries are used, stale ones are validated.
    def get(self, path, reload=False):
        body, etag, fresh_until = self.cache.get(path, (None, None, 0))
        if time.monotonic() < fresh_until and not reload:
            return body, etag
        headers = {"If-None-Match": etag} if etag else {}
        if reload:
            headers["Cache-Control"] = "no-cache"
        asked = time.monotonic()
        response, value = self.call("GET", path, headers=headers)
        body = body if response.status == 304 else value
        control = response.getheader("Cache-Control", "")
        ages = [int(part[8:]) for part in control.replace(" ", "").split(",") if part.startswith("max-age=")]
        lifetime = 0 if "no-cache" in control or not ages else ages[0] - int(response.getheader("Age", 0))
        etag = response.getheader("ETag", etag)
        if "no-store" not in control:
            self.cache[path] = (body, etag, asked + lifetime)
        return body, etag


# Whether the same request may succeed later.
def is_passing(status, problem):
    return status >= 500 or status in (408, 425, 429) or (problem or {}).get("type", "").endswith("idempotency-in-progress")


def retry_after(response):
    text = response.getheader("Retry-After")
    if text is None:
        return 0
    if text.isdigit():
        return int(text)
    date = email.utils.parsedate_to_datetime(response.getheader("Date")) if response.getheader("Date") else None
    now = date.timestamp() if date else time.time()
    return max(0, email.utils.parsedate_to_datetime(text).timestamp() - now) + 0.1


class Tasks:
    def __init__(self, env):
        self.env = env
        self.client = Client(env["LARDER_URL"], env["LARDER_HANDLE"], env["LARDER_PASSWORD"])
        self.rounds = int(env["LARDER_ROUNDS"])

    def report(self, held, partial=False):
        body = {"as": self.env["LARDER_HANDLE"], "held": held, "partial": partial}
        if "LARDER_TYPES" in self.env:
            body["types"] = self.env["LARDER_TYPES"]
        path = urllib.parse.urlsplit(self.env["LARDER_REPORT"]).path
        return self.client.call("POST", path, body, signed=False)[1]

    def read(self):
        for _ in range(self.rounds):
            value, _ = self.client.get(self.env["LARDER_PATH"])
            self.report({value["id"]: value["version"]}, partial=True)

    def list(self):
        while True:
            held, cursor = {}, ""
            try:
                while True:
                    path = f"{self.env['LARDER_PATH']}?limit={self.env['LARDER_LIMIT']}{cursor}"
                    page, _ = self.client.get(path, reload=True)
                    held.update({post["id"]: post["version"] for post in page["items"]})
                    if not page.get("nextCursor"):
                        return self.report(held)
                    cursor = "&after=" + page["nextCursor"]
            except Failed as failure:
                if not failure.body["type"].endswith("invalid-cursor"):
                    raise

    # Reads the change feed to its end into `held`; returns the next token.
    def pull(self, held, token):
        query = f"types={self.env['LARDER_TYPES']}&limit={self.env['LARDER_LIMIT']}"
        while True:
            try:
                _, page = self.client.call("GET", f"/v1/changes?{query}" + (f"&since={token}" if token else ""))
            except Failed as failure:
                if failure.status != 410:
                    raise
                held.clear()
                token = None
                continue
            for change in page["items"]:
                apply(change, held)
            token = page["nextToken"]
            if not page["hasMore"]:
                return token

    def sync(self):
        held, token = {}, None
        for _ in range(self.rounds):
            token = self.pull(held, token)
            self.report({id: version for id, (version, exists) in held.items() if exists})

    def transfer(self):
        for amount in self.env["LARDER_AMOUNTS"].split(","):
            money = {"minorUnits": int(amount), "currency": self.env["LARDER_CURRENCY"]}
            body = {"fromAccountId": self.env["LARDER_FROM"], "toAccountId": self.env["LARDER_TO"], "amount": money}
            self.client.call("POST", "/v1/transfers", body, {"Idempotency-Key": f'"{uuid.uuid4()}"'})

    def edit(self):
        path = self.env["LARDER_PATH"]
        for word in self.env["LARDER_WORDS"].split(","):
            for attempt in range(20):
                profile, etag = self.client.get(path, reload=True)
                if word in profile["bio"].split():
                    break  # an earlier attempt was carried out
                try:
                    headers = {"If-Match": etag, "Content-Type": "application/merge-patch+json"}
                    response, value = self.client.call("PATCH", path, {"bio": profile["bio"] + " " + word}, headers)
                    break
                except Failed as failure:
                    if failure.status != 412:
                        raise
                    time.sleep(0.1 + random.random() * 0.2)  # a replica may lag behind

    def post(self):
        self.client.call("POST", self.env["LARDER_PATH"], {"text": self.env["LARDER_TEXT"]},
                         {"Idempotency-Key": f'"{uuid.uuid4()}"'})

    def message(self):
        body = {"text": self.env["LARDER_TEXT"], "clientId": str(uuid.uuid4())}
        self.client.call("POST", self.env["LARDER_PATH"], body)

    def like(self):
        self.client.call("PUT", self.env["LARDER_PATH"])

    def follow(self):
        held, token = {}, None
        end, has_reported = None, False
        while end is None or time.monotonic() < end:
            stream = http.client.HTTPConnection(self.client.base.hostname, self.client.base.port, timeout=0.2)
            try:
                path = self.env["LARDER_PATH"] + (f"&since={token}" if token else "")
                stream.request("GET", path, headers={"Authorization": "Bearer " + self.client.token()})
                response = stream.getresponse()
                if response.status == 410:
                    held, token = {}, None
                    continue
                if not has_reported:
                    # The channel is open, so nothing is missed between the two.
                    token = self.pull(held, None)
                    self.report({id: version for id, (version, exists) in held.items() if exists})
                    end, has_reported = time.monotonic() + float(self.env["LARDER_SECONDS"]), True
                while time.monotonic() < end:
                    try:
                        line = response.fp.readline()
                    except TimeoutError:
                        break
                    if not line:
                        break
                    if not line.startswith(b"data:") or b'"change"' not in line:
                        continue
                    event = json.loads(line[5:])
                    if event["token"] == token:
                        continue  # delivered twice
                    apply(event["change"], held)
                    # An event that does not follow the last one: something is missing.
                    token = event["token"] if event["previousToken"] == token else self.pull(held, token)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05 + random.random() * 0.1)
            finally:
                stream.close()
        self.report({id: version for id, (version, exists) in held.items() if exists})


# The greater version wins, whatever the order. A deletion is remembered with its version.
def apply(change, held):
    version, _ = held.get(change["id"], (0, False))
    if change["version"] >= version:
        held[change["id"]] = (change["version"], change["op"] == "upsert")


if __name__ == "__main__":
    getattr(Tasks(os.environ), os.environ["LARDER_TASK"])()
