"""A client as it is often written first: correct on a good network, and nowhere else."""

import json
import os
import urllib.request

ENV = os.environ
HEADERS = {"Authorization": "Bearer " + ENV["LARDER_TOKEN"], "Content-Type": "application/json"}


def call(method, path, body=None, **headers):
    url = path if path.startswith("http") else ENV["LARDER_URL"] + path
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {**HEADERS, **headers}, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response) if response.status != 204 else None


def report(held, partial=False):
    body = {"as": ENV["LARDER_HANDLE"], "held": held, "partial": partial}
    if "LARDER_TYPES" in ENV:
        body["types"] = ENV["LARDER_TYPES"]
    call("POST", ENV["LARDER_REPORT"], body)


def read():
    for _ in range(int(ENV["LARDER_ROUNDS"])):
        value = call("GET", ENV["LARDER_PATH"])
        report({value["id"]: value["version"]}, partial=True)


def list_posts():
    held, page = {}, 1
    while True:
        posts = call("GET", f"{ENV['LARDER_PATH']}/pages?page={page}&limit={ENV['LARDER_LIMIT']}")["items"]
        if not posts:
            return report(held)
        held.update({post["id"]: post["version"] for post in posts})
        page += 1


def sync():
    held, query = {}, f"types={ENV['LARDER_TYPES']}&limit={ENV['LARDER_LIMIT']}"
    token = ""
    for _ in range(int(ENV["LARDER_ROUNDS"])):
        while True:
            page = call("GET", "/v1/changes?" + query + token)
            for change in page["items"]:
                held[change["id"]] = change["version"]
            token = "&since=" + page["nextToken"]
            if not page["hasMore"]:
                break
        report(held)


def transfer():
    for amount in ENV["LARDER_AMOUNTS"].split(","):
        money = {"minorUnits": int(amount), "currency": ENV["LARDER_CURRENCY"]}
        body = {"fromAccountId": ENV["LARDER_FROM"], "toAccountId": ENV["LARDER_TO"], "amount": money}
        call("POST", "/v1/transfers", body, **{"Idempotency-Key": "transfer"})


def edit():
    for word in ENV["LARDER_WORDS"].split(","):
        bio = call("GET", ENV["LARDER_PATH"])["bio"] + " " + word
        call("PATCH", ENV["LARDER_PATH"], {"bio": bio},
             **{"If-Match": "*", "Content-Type": "application/merge-patch+json"})


def post():
    call("POST", ENV["LARDER_PATH"], {"text": ENV["LARDER_TEXT"]}, **{"Idempotency-Key": os.urandom(8).hex()})


def message():
    call("POST", ENV["LARDER_PATH"], {"text": ENV["LARDER_TEXT"], "clientId": os.urandom(8).hex()})


def like():
    call("PUT", ENV["LARDER_PATH"])


def follow():
    held = {}
    request = urllib.request.Request(ENV["LARDER_URL"] + ENV["LARDER_PATH"], headers=HEADERS)
    with urllib.request.urlopen(request, timeout=float(ENV["LARDER_SECONDS"])) as stream:
        for change in call("GET", f"/v1/changes?types={ENV['LARDER_TYPES']}&limit={ENV['LARDER_LIMIT']}")["items"]:
            held[change["id"]] = change["version"]
        report(held)
        try:
            for line in stream:
                if line.startswith(b"data:") and b'"change"' in line:
                    change = json.loads(line[5:])["change"]
                    held[change["id"]] = change["version"]
                    if change["op"] == "delete":
                        del held[change["id"]]
        except TimeoutError:
            pass
    report(held)


tasks = {"list": list_posts, "read": read, "sync": sync, "transfer": transfer, "edit": edit, "post": post,
         "message": message, "like": like, "follow": follow}
tasks[ENV["LARDER_TASK"]]()
