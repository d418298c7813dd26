#!/usr/bin/env python3
"""Kills clients and the server at random under faults, fills their disks, and counts lost, doubled, reordered and wrongly reported effects.

Three client processes write at the pace of active users: two share an account and a directory, the third has its own. A fourth account
is used by the command `larder`, one process for each message. Every call is logged and synced before and after it. The server keeps its
state in a database file, gives access tokens of 15 seconds, and is killed and restarted too. Disks that fill up are limits on the size of
files (RLIMIT_FSIZE), set on running processes and lifted again. After each round the faults end, the outboxes drain, the logs are
compared with the database, and the server, whose clients have left, must be idle.

    make storm MINUTES=30 SEED=11
    python3 Tests/Storm/storm.py --minutes 30 [--seed N] [--directory DIR] [--configuration debug]

Exits with 1 if anything was lost, doubled, reordered or wrongly reported, or the server is not idle.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Scripts"))
from idle_check import Busy, expect_idle  # noqa: E402

# Processes of one account share a directory. Each process likes its own posts, so that its last like is known.
PROCESSES = {
    "a1": ("ana", "conv_1,conv_2", ["post_%d" % n for n in range(10, 16)]),
    "a2": ("ana", "conv_1,conv_4", ["post_%d" % n for n in range(20, 26)]),
    "b1": ("ben", "conv_1,conv_3", ["post_%d" % n for n in range(30, 36)]),
}
# The command's account, and its conversation with ana.
COMMAND = "c1"
ACCOUNTS = {**PROCESSES, COMMAND: ("chidi", "conv_2", [])}
USERS = {"ana": 1, "ben": 2, "chidi": 3}
# Each process has a log for each run, which stays below this limit.
FILE_BYTES_MINIMUM = 1 << 19
WRITES = {"path": "/v1/**", "method": "POST"}
FAULTS = [
    {"match": {**WRITES, "probability": 0.3}, "action": {"type": "loseReply", "by": "reset"}},
    {"match": {**WRITES, "probability": 0.3}, "action": {"type": "loseReply", "by": "close"}},
    {"match": {**WRITES, "probability": 0.2}, "stage": "afterCommit", "action": {"type": "respond", "status": 503}},
    {"match": {**WRITES, "probability": 0.2}, "stage": "afterCommit", "action": {"type": "respond", "status": 500}},
    {"match": {**WRITES, "probability": 0.3}, "action": {"type": "respond", "status": 429, "retryAfter": {"seconds": 1}}},
    {"match": {**WRITES, "probability": 0.3}, "action": {"type": "duplicate"}},
    {"match": {**WRITES, "probability": 0.4}, "stage": "afterCommit",
     "action": {"type": "latency", "firstByte": {"uniform": [0.5, 5]}}},
    {"match": {"path": "/v1/sessions/refresh", "probability": 0.5}, "action": {"type": "loseReply", "by": "reset"}},
    {"match": {"path": "/v1/**", "probability": 0.1}, "action": {"type": "expireToken"}},
    {"match": {"path": "/v1/**", "probability": 0.2}, "action": {"type": "truncate", "byte": 40}},
    {"match": {"path": "/v1/**", "probability": 0.2}, "action": {"type": "loseReply", "by": "close"}},
    {"match": {"path": "/v1/live", "probability": 0.8}, "action": {"type": "live", "lose": 0.2, "duplicate": 0.2, "reorder": 0.2}},
    {"match": {"path": "/v1/**"}, "action": {"type": "lag", "seconds": 1}},
]
JOURNEYS = ["lossy-wifi", "3g", "overloaded", "tunnel", "captive-portal"]


class Storm:
    def __init__(self, options):
        self.random = random.Random(options.seed)
        self.directory = pathlib.Path(options.directory or tempfile.mkdtemp(prefix="larder-storm-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.database = self.directory / "server.sqlite"
        self.options = options
        self.products = ROOT / ".build" / options.configuration
        self.clients, self.server, self.runs = {}, None, 0
        self.kills, self.server_kills, self.full_disks = 0, 0, 0
        # The running command with its intent, and when it dies.
        self.command, self.commands = None, 0
        self.server_errors = open(self.directory / "server.log", "ab")
        self.client_errors = open(self.directory / "clients.log", "ab")
        with socket.create_server(("127.0.0.1", options.port)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.reported, self.journey = set(), None

    # The server

    def spawn(self, arguments, errors):
        # A write beyond the limit of a file's size is an error, and not the end of the process.
        return subprocess.Popen(arguments, stdout=errors, stderr=errors, restore_signals=False,
                                preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))

    def fill_disk(self, process, files):
        """Limits the size of a process's files to about what they have."""
        size = max((path.stat().st_size for path in files if path.is_file()), default=0)
        limit = max(FILE_BYTES_MINIMUM, int(size * self.random.uniform(0.5, 1)))
        try:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            self.full_disks += 1
        except ProcessLookupError:
            pass

    def free_disks(self):
        for process in [self.server, *self.clients.values()]:
            try:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            except ProcessLookupError:
                pass

    def start_server(self):
        self.server = self.spawn(
            [self.products / "larder-server", "--port", str(self.port), "--database", self.database, "--token-ttl", "15", "--quiet",
             "--fixtures", ROOT / "Fixtures"], self.server_errors)
        for _ in range(600):
            try:
                with urllib.request.urlopen(self.url + "/healthz", timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                if self.server.poll() is not None:
                    sys.exit(f"The server ended with {self.server.returncode}; see {self.directory}/server.log.")
                time.sleep(0.05)
        sys.exit("The server does not answer.")

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + "/_larder" + path, method=method, headers={"Content-Type": "application/json"},
            data=json.dumps(body).encode() if body is not None else None)
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            if error.code >= 400 and error.code != 404:
                sys.exit(f"{method} {path}: {error.code} {error.read().decode()[:300]}")
            return error.code
        except OSError:
            return None

    def calm(self):
        """Ends the journey and every fault."""
        if self.journey:
            self.control("DELETE", "/journeys/" + self.journey)
        self.journey = None
        self.control("PUT", "/faults", {"faults": []})

    # The clients

    def start_client(self, name, *more):
        account, conversations, posts = PROCESSES[name]
        self.runs += 1
        return self.spawn(
            [self.products / "storm-client", "--server", self.url, "--directory", self.directory / "clients",
             "--account", account, "--process", name, "--run", str(self.runs),
             "--log", self.directory / f"{name}-{self.runs}.log",
             "--conversations", conversations, "--posts", ",".join(posts), *more], self.client_errors)

    def larder(self, *arguments):
        return self.spawn([self.products / "larder", *arguments, "--server", self.url, "--user", ACCOUNTS[COMMAND][0],
                           "--directory", self.directory / "command"], self.client_errors)

    def note(self, record):
        """Appends an intent of the command, or its result, and syncs it."""
        with open(self.directory / f"{COMMAND}-0.log", "ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def step_command(self, now):
        """Starts the next command, notes the result of one that has ended, or kills one in the middle of its work."""
        if self.command is None:
            self.commands += 1
            text, to = f"{COMMAND} 0 {self.commands}", ACCOUNTS[COMMAND][1]
            intent = {"kind": "message", "to": to, "text": text, "process": COMMAND, "run": 0}
            self.note(intent)
            process = self.larder("chat", to, "--send", text, "--wait", "1")
            self.command = process, intent, now + self.random.choice([0.05, 0.2, 0.5, 30]) * self.random.uniform(0.5, 2)
            return
        process, intent, death = self.command
        code = process.poll()
        if code is None and now > death:
            self.kill(process)
            self.kills += 1
            self.command = None
        elif code is not None:
            # After a failure it is unknown whether the message was queued, as after a kill.
            self.note({**intent, "result": "kept"} if code == 0 else {"event": f"command exit {code}", "text": intent["text"]})
            self.command = None

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    # A round

    def disturb(self, until):
        deaths = {name: 0.0 for name in PROCESSES}
        now = time.time()
        next_fault, next_server_death = 0.0, now + self.random.uniform(3, 20)
        next_full_disk, next_free_disk = now + self.random.uniform(1, 5), until
        while (now := time.time()) < until:
            self.step_command(now)
            for name in PROCESSES:
                if now < deaths[name]:
                    continue
                if name in self.clients:
                    code = self.clients[name].poll()
                    if code is not None:
                        sys.exit(f"Client {name} ended by itself with {code}; see {self.directory}/clients.log.")
                    self.kill(self.clients[name])
                    self.kills += 1
                self.clients[name] = self.start_client(name)
                deaths[name] = now + self.random.choice([0.15, 0.4, 1, 3, 8]) * self.random.uniform(0.5, 2)
            if now > next_full_disk:
                if self.random.random() < 0.5:
                    self.fill_disk(self.server, self.directory.glob("server.sqlite*"))
                else:
                    for process in self.clients.values():
                        self.fill_disk(process, (self.directory / "clients").rglob("*"))
                next_free_disk = now + self.random.uniform(0.5, 5)
                next_full_disk = next_free_disk + self.random.uniform(2, 15)
            if now > next_free_disk:
                self.free_disks()
                next_free_disk = until
            if now > next_server_death:
                self.kill(self.server)
                self.server_kills += 1
                time.sleep(self.random.choice([0, 0, 0.5, 2]))
                self.start_server()
                next_server_death, next_fault = now + self.random.uniform(5, 40), 0
            if now > next_fault:
                self.calm()
                self.control("PUT", "/faults", {"faults": self.random.sample(FAULTS, self.random.randint(0, 3))})
                if self.random.random() < 0.3:
                    self.journey = self.random.choice(JOURNEYS)
                    self.control("POST", "/journeys/" + self.journey)
                next_fault = now + self.random.uniform(1, 6)
            time.sleep(0.02)

    def heal(self):
        for process in self.clients.values():
            self.kill(process)
        if self.command:
            self.kill(self.command[0])
        self.clients, self.command = {}, None
        self.free_disks()
        self.calm()
        for name in ("a1", "b1"):
            began = time.time()
            try:
                code = self.start_client(name, "--drain", "600").wait(timeout=700)
            except subprocess.TimeoutExpired:
                sys.exit(f"The outbox of {name} did not drain within 700 s; see {self.directory}/clients.log.")
            if code != 0:
                sys.exit(f"{name} ended with {code} while it drained; see {self.directory}/clients.log.")
            print(f"  {name} drained in {time.time() - began:.1f} s", flush=True)
        self.drain_command()

    def drain_command(self):
        began = time.time()
        while True:
            try:
                self.larder("outbox", "send", "--wait", "20").wait(timeout=100)
            except subprocess.TimeoutExpired:
                sys.exit("`larder outbox send` did not end within 100 s.")
            listing = subprocess.run(
                [self.products / "larder", "outbox", "--json", "--user", ACCOUNTS[COMMAND][0], "--server", self.url,
                 "--directory", self.directory / "command"], capture_output=True, text=True, timeout=100, check=False)
            left = json.loads(listing.stdout)["items"] if listing.returncode == 0 else [listing.stderr]
            if not left or time.time() - began > 200:
                break
        self.note({"drained": left, "unresolved": 0, "session": ""})
        print(f"  {COMMAND} drained in {time.time() - began:.1f} s", flush=True)

    def records(self, name):
        """The records of a process, in order."""
        logs = sorted(self.directory.glob(f"{name}-*.log"), key=lambda path: int(re.findall(r"\d+", path.stem)[-1]))
        for line in b"\n".join(path.read_bytes() for path in logs).splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # A line that was cut off by a kill.

    # The verdict

    def check(self):
        database = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        messages = collections.defaultdict(list)
        for conversation, head in database.execute("SELECT list, head FROM entities WHERE kind = 6 ORDER BY id"):
            text = json.loads(bytes(head).decode() + "}")["text"]
            messages[text].append(conversation)
        order = [json.loads(bytes(head).decode() + "}")["text"]
                 for (head,) in database.execute("SELECT head FROM entities WHERE kind = 6 ORDER BY id")]
        transfers = collections.Counter(note for (note,) in database.execute("SELECT note FROM transfers"))
        likes = {(user, post) for user, post in database.execute("SELECT user, post FROM likes")}
        unbalanced = database.execute(
            "SELECT count(*) FROM (SELECT transfer FROM entries GROUP BY transfer HAVING sum(amount) <> 0)").fetchone()[0]
        database.close()
        count = collections.Counter(unbalanced_transfers=unbalanced)
        for name, (account, _, posts) in ACCOUNTS.items():
            acknowledged, intents, last_like = [], {}, collections.defaultdict(list)
            left = {"drained": [], "unresolved": 0}
            for record in self.records(name):
                kind, result = record.get("kind"), record.get("result")
                if "drained" in record:
                    left = record
                    if "expired" in record["session"]:
                        count["signed out"] += 1
                elif record.get("event") == "rejected":
                    if record["operation"] != "transfer":
                        count["rejected writes"] += 1
                        self.report(f"{name}: {record}")
                elif record.get("event"):
                    count["event " + record["event"]] += 1
                elif result is None:
                    count[kind + " attempted"] += 1
                    intents[kind, record.get("text") or record.get("note") or (record["run"], record["number"])] = record
                    if kind == "like":
                        last_like[record["post"]].append([record, False])
                else:
                    if record.get("session") == "expired":
                        count["signed out"] += 1
                        self.report(f"{name} was signed out: {record}")
                    if kind == "message":
                        intents.pop((kind, record["text"]), None)
                        if result == "kept":
                            acknowledged.append(record)
                            count["message acknowledged"] += 1
                        else:
                            count["message " + result] += 1
                            self.report(f"{name}: {record}")
                    elif kind == "like":
                        intents.pop((kind, (record["run"], record["number"])), None)
                        if result == "kept":
                            last_like[record["post"]][-1][1] = True
                            count["like acknowledged"] += 1
                        else:
                            last_like[record["post"]].pop()
                            count["like " + result] += 1
                            self.report(f"{name}: {record}")
                    elif kind == "transfer":
                        intents.pop((kind, record["note"]), None)
                        count["transfer " + result] += 1
                        found = transfers[record["note"]]
                        if found > 1:
                            count["DOUBLED"] += 1
                            self.report(f"{name}: {found} effects of {record}")
                        elif result == "done" and found == 0:
                            count["LOST"] += 1
                            self.report(f"{name}: no effect of {record}")
                        elif result not in ("done", "inDoubt") and found == 1:
                            count["WRONGLY REPORTED"] += 1
                            self.report(f"{name}: done, but reported as {record}")
                        elif result == "rejected" and not 400 <= (record.get("status") or 0) < 500:
                            count["WRONGLY REPORTED"] += 1
                            self.report(f"{name}: {record}")
                        elif result == "inDoubt":
                            count["transfer inDoubt, done" if found else "transfer inDoubt, not done"] += 1
            # Counts the last drain only: operations left by an earlier one may have been sent since.
            count["undrained"] += len(left["drained"])
            count["unresolved"] += left["unresolved"]
            for entry in left["drained"]:
                self.report(f"{name} left {entry}")
            for (kind, key), record in intents.items():
                count[kind + " interrupted"] += 1
                if kind == "transfer" and transfers[key] > 1:
                    count["DOUBLED"] += 1
                    self.report(f"{name}: {transfers[key]} effects of {record}")
                if kind == "message" and len(messages[key]) > 1:
                    count["DOUBLED"] += 1
                    self.report(f"{name}: {len(messages[key])} effects of {record}")
            position = {text: index for index, text in enumerate(order)}
            newest = {}
            for record in acknowledged:
                found = len(messages[record["text"]])
                if found != 1:
                    count["LOST" if found == 0 else "DOUBLED"] += 1
                    self.report(f"{name}: {found} effects of {record}")
                    continue
                here = position[record["text"]]
                if here < newest.get(record["to"], -1):
                    count["REORDERED"] += 1
                    self.report(f"{name}: out of order: {record}")
                newest[record["to"]] = max(here, newest.get(record["to"], -1))
            for post, taps in last_like.items():
                # The last acknowledged like, or a later interrupted one, must be in effect.
                last = max((index for index, (_, kept) in enumerate(taps) if kept), default=None)
                if last is None:
                    continue
                allowed = {tap["liked"] for tap, _ in taps[last:]}
                if ((USERS[account], int(post.split("_")[1])) in likes) not in allowed:
                    count["LOST"] += 1
                    self.report(f"{name}: {post} should be liked: {taps[last][0]['liked']}")
        return count

    def report(self, text):
        if text not in self.reported:
            self.reported.add(text)
            with open(self.directory / "findings.log", "a", encoding="utf-8") as file:
                file.write(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--round-seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1, help="seed of kills and faults; the timing of processes is not repeated")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--configuration", default="release", choices=["release", "debug"], help="which build is tested")
    parser.add_argument("--directory", help="directory for databases and logs; must be empty (default: a temporary directory)")
    options = parser.parse_args()
    storm = Storm(options)
    for file in ("larder-server", "larder", "storm-client"):
        if not (storm.products / file).exists():
            sys.exit(f"{storm.products / file} is missing. `make storm` builds it.")
    print(f"seed {options.seed}, in {storm.directory}", flush=True)
    end, bad = time.time() + options.minutes * 60, 0
    storm.start_server()
    try:
        while time.time() < end:
            storm.disturb(min(end, time.time() + options.round_seconds))
            storm.heal()
            count = storm.check()
            try:
                expect_idle(storm.server.pid)
            except Busy as finding:
                storm.report(str(finding))
                count["not idle"] += 1
            bad = sum(count[name] for name in ("LOST", "DOUBLED", "REORDERED", "WRONGLY REPORTED", "undrained",
                                               "unresolved", "signed out", "rejected writes", "unbalanced_transfers",
                                               "not idle"))
            attempted, acknowledged = (sum(count[f"{kind} {what}"] for kind in ("message", "like", "transfer"))
                                       for what in ("attempted", "acknowledged"))
            print(f"{storm.kills} client kills, {storm.server_kills} server kills, {storm.full_disks} full disks; {attempted} attempted, "
                  f"{acknowledged + count['transfer done']} acknowledged, {count['LOST']} lost, {count['DOUBLED']} doubled; "
                  f"{bad} findings", flush=True)
            for name in sorted(count):
                print(f"    {name}: {count[name]}", flush=True)
    finally:
        for process in [*storm.clients.values(), storm.server, storm.command and storm.command[0]]:
            if process and process.poll() is None:
                storm.kill(process)
    if bad:
        findings = (storm.directory / "findings.log").read_text(encoding="utf-8").splitlines()
        print("\n".join(findings[:20]))
        print(f"All {len(findings)} records are in {storm.directory}/findings.log.")
        print(f"Another storm with these kills and faults: --seed {options.seed}")
    elif not options.directory:
        shutil.rmtree(storm.directory)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
