#!/usr/bin/env python3
"""Runs the news reader against the example backend as a person would, and prints requests and bytes of each action.

    swift build && python3 check.py .build/debug/news

Exits with 1 if an action prints or requests something else than this file says.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


class Drive:
    def __init__(self, reader, directory):
        self.reader, self.directory = reader, directory
        self.seen, self.failures = 0, []
        self.backend = subprocess.Popen([sys.executable, os.path.join(HERE, "backend.py"), "--port", "0"],
                                        stdout=subprocess.PIPE, text=True)
        self.server = self.backend.stdout.readline().split()[-1]

    def admin(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.server}/admin/{path}", data) as reply:
            return json.load(reply)

    def new_requests(self):
        requests = self.admin("log")["requests"]
        new, self.seen = requests[self.seen:], len(requests)
        return new

    def start(self, *words):
        command = [self.reader, *words, "--server", self.server, "--directory", self.directory]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def action(self, what, *words, says, requests):
        """Runs a command. `says` must be in its output; `requests` are the statuses of its requests, in order."""
        text = self.start(*words).communicate(timeout=60)[0]
        self.judge(what, text, says, requests)

    def judge(self, what, text, says, requests):
        new = self.new_requests()
        statuses = [request["status"] for request in new]
        print(f"{what:<58} {len(new):>8} {sum(request['bytes'] for request in new):>8}  {statuses}")
        if says not in text:
            self.failures.append(f"{what}: '{says}' is not in the output:\n{text}")
        if statuses != requests:
            self.failures.append(f"{what}: expected {requests}, got {statuses}")

    def wait(self, condition):
        """Waits until the state of the backend fulfils a condition, 20 s at most."""
        for _ in range(400):
            if condition(self.admin("log")):
                return
            time.sleep(0.05)
        self.failures.append("the backend did not reach the expected state within 20 s")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        drive = Drive(os.path.abspath(sys.argv[1]), directory)
        try:
            run(drive)
        finally:
            drive.backend.terminate()
        for failure in drive.failures:
            print("FAILED", failure)
        print("ok" if not drive.failures else f"{len(drive.failures)} failures")
        sys.exit(1 if drive.failures else 0)


def run(drive):
    print(f"{'action':<58} {'requests':>8} {'bytes':>8}  statuses")
    drive.action("open the list for the first time", "list", says="20 articles, fresh", requests=[200])
    drive.action("open it again", "list", says="20 articles, fresh", requests=[])
    drive.action("scroll to older articles", "more", says="40 articles", requests=[200])
    drive.action("open an article", "show", "5", says="The text of story 5.", requests=[200])
    drive.action("open it again, offline", "show", "5", "--offline", says="fresh, from disk", requests=[])
    drive.action("read a resource that has only a date", "almanac", says="06:12", requests=[200])
    drive.action("sign in", "sign-in", "news", says="signed in", requests=[200])
    drive.action("read what must not be stored", "me", says="Ana", requests=[200])
    drive.action("set a bookmark offline", "star", "7", "--offline", says="it will be sent", requests=[])
    drive.action("send it", "send", says="sent", requests=[204])
    drive.action("read the bookmarks", "bookmarks", says="7", requests=[200])
    drive.action("read them again: no-cache, so the server confirms", "bookmarks", says="7", requests=[304])
    drive.admin("expire", {})
    drive.action("post a comment with an expired token", "comment", "5", "hello", says="sent", requests=[401, 200, 201])
    drive.admin("expire", {"refresh": True})
    drive.action("set a bookmark after the session has ended", "star", "9", says="waits", requests=[401, 400])
    drive.action("sign in again: the bookmark is sent", "sign-in", "news", says="signed in", requests=[200, 204])
    drive.admin("overload", {"seconds": 60})
    drive.action("open an article while the server is overloaded", "show", "20", says="503", requests=[503])
    drive.admin("overload", {"seconds": 0})
    watch(drive)
    secret = subprocess.run(["grep", "-rl", "4111-1111", drive.directory], capture_output=True, text=True).stdout
    if secret:
        drive.failures.append(f"a value with no-store is in {secret}")
    state = drive.admin("log")
    if state["bookmarks"] != [7, 9] or len(state["comments"]) != 1:
        drive.failures.append(f"the backend has bookmarks {state['bookmarks']} and comments {state['comments']}")


def watch(drive):
    """Follows events, loses the connection once, and is told of two changes. Each connection makes stored articles stale."""
    def articles(state):
        return sum(request["path"] == "/articles/6" for request in state["requests"])

    drive.action("open another article", "show", "6", says="revision 1", requests=[200])
    reader = drive.start("watch", "6")
    # The article was requested once before, and is confirmed when the connection is there.
    drive.wait(lambda state: state["readers"] == 1 and articles(state) == 2)
    drive.admin("touch", {"id": 6, "title": "Corrected"})
    drive.wait(lambda state: articles(state) == 3)
    drive.admin("drop", {})
    drive.admin("touch", {"id": 6, "title": "Corrected twice"})
    drive.wait(lambda state: state["readers"] == 1 and articles(state) == 4)
    reader.terminate()
    text = reader.communicate(timeout=60)[0]
    drive.judge("see two corrections, one of them missed by the stream", text, "Corrected twice", [200, 304, 200, 200, 200])


if __name__ == "__main__":
    main()
