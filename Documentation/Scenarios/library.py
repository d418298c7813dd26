"""A client that leaves failures to well-known libraries: requests with urllib3's Retry, and the cache of requests-cache.

    pip install requests requests-cache

What the libraries ask of an app is done: cursors, tombstones, one key for each write, `If-Match` with the real tag, retries that honour
`Retry-After` (of writes too, because they have keys).
"""

import json
import os
import uuid

import requests
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from urllib3.util.retry import Retry

ENV = os.environ
QUERY = f"types={ENV.get('LARDER_TYPES', '')}&limit={ENV.get('LARDER_LIMIT', '')}"

session = CachedSession(backend="memory", cache_control=True, allowable_methods=["GET"])
session.headers["Authorization"] = "Bearer " + ENV["LARDER_TOKEN"]
for scheme in ["http://", "https://"]:
    session.mount(scheme, HTTPAdapter(max_retries=Retry(
        total=6, backoff_factor=0.05, backoff_jitter=0.1, allowed_methods=None,
        status_forcelist=[408, 425, 429, 500, 502, 503, 504])))


def call(method, path, body=None, headers=None, **more):
    url = path if path.startswith("http") else ENV["LARDER_URL"] + path
    response = session.request(method, url, json=body, headers=headers, timeout=5, verify=ENV.get("LARDER_CA", True), **more)
    response.raise_for_status()
    return response.json() if response.content else None, response


def report(held, partial=False):
    body = {"as": ENV["LARDER_HANDLE"], "held": held, "partial": partial}
    if "LARDER_TYPES" in ENV:
        body["types"] = ENV["LARDER_TYPES"]
    call("POST", ENV["LARDER_REPORT"], body)


def apply(change, held):
    if change["op"] == "delete":
        held.pop(change["id"], None)
    else:
        held[change["id"]] = change["version"]


def read():
    for _ in range(int(ENV["LARDER_ROUNDS"])):
        value, _ = call("GET", ENV["LARDER_PATH"])
        report({value["id"]: value["version"]}, partial=True)


def list_posts():
    held, cursor = {}, ""
    while True:
        page, _ = call("GET", f"{ENV['LARDER_PATH']}?limit={ENV['LARDER_LIMIT']}{cursor}")
        held.update({post["id"]: post["version"] for post in page["items"]})
        if not page.get("nextCursor"):
            return report(held)
        cursor = "&after=" + page["nextCursor"]


def pull(held, token):
    while True:
        page, _ = call("GET", f"/v1/changes?{QUERY}{token}")
        for change in page["items"]:
            apply(change, held)
        token = "&since=" + page["nextToken"]
        if not page["hasMore"]:
            return token


def sync():
    held, token = {}, ""
    for _ in range(int(ENV["LARDER_ROUNDS"])):
        token = pull(held, token)
        report(held)


def transfer():
    for amount in ENV["LARDER_AMOUNTS"].split(","):
        money = {"minorUnits": int(amount), "currency": ENV["LARDER_CURRENCY"]}
        body = {"fromAccountId": ENV["LARDER_FROM"], "toAccountId": ENV["LARDER_TO"], "amount": money}
        call("POST", "/v1/transfers", body, {"Idempotency-Key": str(uuid.uuid4())})


def edit():
    for word in ENV["LARDER_WORDS"].split(","):
        profile, response = call("GET", ENV["LARDER_PATH"])
        call("PATCH", ENV["LARDER_PATH"], {"bio": profile["bio"] + " " + word},
             {"If-Match": response.headers["ETag"], "Content-Type": "application/merge-patch+json"})


def post():
    call("POST", ENV["LARDER_PATH"], {"text": ENV["LARDER_TEXT"]}, {"Idempotency-Key": str(uuid.uuid4())})


def message():
    call("POST", ENV["LARDER_PATH"], {"text": ENV["LARDER_TEXT"], "clientId": str(uuid.uuid4())})


def like():
    call("PUT", ENV["LARDER_PATH"])


def follow():
    held = {}
    stream = requests.get(ENV["LARDER_URL"] + ENV["LARDER_PATH"], headers=session.headers, stream=True,
                          timeout=float(ENV["LARDER_SECONDS"]))
    pull(held, "")
    report(held)
    try:
        for line in stream.iter_lines(chunk_size=1):
            if line.startswith(b"data:") and b'"change"' in line:
                apply(json.loads(line[5:])["change"], held)
    except requests.exceptions.RequestException:
        pass
    report(held)


tasks = {"list": list_posts, "read": read, "sync": sync, "transfer": transfer, "edit": edit, "post": post,
         "message": message, "like": like, "follow": follow}
tasks[ENV["LARDER_TASK"]]()
