#!/usr/bin/env python3
"""A news backend that knows nothing of Larder, with the standard library only.

    python3 backend.py --port 9100

    POST   /token                    password grant and refresh grant (RFC 6749); a used refresh token is rejected
    GET    /articles?page=&per_page= newest first, ETag, max-age=60, Link rel="next" (RFC 8288)
    GET    /articles/ID              ETag and Last-Modified, max-age=60
    GET    /almanac                  Last-Modified only
    GET    /me                       no-store; needs a token
    GET    /bookmarks                ETag; needs a token
    PUT    /articles/ID/bookmark     204; also DELETE; needs a token
    POST   /articles/ID/comments     201; needs a token; repeats under one Idempotency-Key have one effect
    POST   /articles/ID/photo        201; multipart/form-data; needs a token
    GET    /events                   server-sent events: "event: article", "data: {"id": 7}"; needs a token

For tests, without a token:

    POST   /admin/touch     {"id": 7, "title": "…"}  edits an article and sends an event
    POST   /admin/publish   {"title": "…"}           adds an article and sends an event
    POST   /admin/expire    {}                       access tokens expire; {"refresh": true}: refresh tokens too
    POST   /admin/overload  {"seconds": 60}          503 with Retry-After; 0 ends it
    POST   /admin/drop      {}                       ends all event streams
    GET    /admin/log                                every request: method, path, status, bytes of the reply
"""

import argparse
import email.utils
import hashlib
import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

START = 1_767_225_600  # 2026-01-01T00:00:00Z


class News:
    """The articles, bookmarks, comments and tokens. Every method is called with `lock` held."""

    def __init__(self, count):
        self.lock = threading.Lock()
        self.articles = {}
        for number in range(1, count + 1):
            self.publish(f"Story {number}", START + 60 * number)
        self.almanac = {"sunrise": "06:12", "sunset": "18:40"}
        self.bookmarks = set()
        self.comments = []
        self.photos = []
        self.keys = {}
        self.generation = 0
        self.access = set()
        self.refresh = set()
        self.overloaded_until = 0.0
        self.readers = []
        self.log = []

    def publish(self, title, at):
        number = len(self.articles) + 1
        article = {"id": number, "title": title, "body_text": f"The text of story {number}.", "author_name": "Ana",
                   "published_at": iso(at), "revision": 1, "changed": int(at)}
        self.articles[number] = article
        return article

    def grant(self):
        self.generation += 1
        access, refresh = f"access-{self.generation}", f"refresh-{self.generation}"
        self.access.add(access)
        self.refresh.add(refresh)
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}

    def tell(self, name, data):
        for reader in self.readers:
            reader.put((name, data))


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A head and a body in two writes would otherwise wait for the peer's delayed acknowledgement.
    disable_nagle_algorithm = True
    news: News

    def log_message(self, *_):
        pass

    # Replies

    def reply(self, status, body=None, fields=(), kind="application/json"):
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if content:
            self.send_header("Content-Type", kind)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.note(status, len(content))

    def note(self, status, count):
        if not self.path.startswith("/admin/"):
            condition = self.headers.get("If-None-Match") or self.headers.get("If-Modified-Since")
            self.news.log.append({"method": self.command, "path": self.path, "status": status, "bytes": count,
                                  "condition": condition, "cacheControl": self.headers.get("Cache-Control")})

    def problem(self, status, title, fields=()):
        self.reply(status, {"error": title}, fields)

    def conditional(self, value, control, changed=None, tagged=True):
        """Replies with a value or with 304 (RFC 9110 section 13)."""
        content = json.dumps(value).encode()
        fields = [("Cache-Control", control)] if control else []
        tag = '"' + hashlib.sha256(content).hexdigest()[:16] + '"'
        date = email.utils.formatdate(changed, usegmt=True) if changed else None
        if tagged:
            fields.append(("ETag", tag))
        if date:
            fields.append(("Last-Modified", date))
        asked = self.headers.get("If-None-Match")
        if tagged and asked is not None:
            matches = tag in [part.strip() for part in asked.split(",")]
        else:
            matches = date is not None and self.headers.get("If-Modified-Since") == date
        return (304, None, fields) if matches else (200, content, fields)

    def is_signed_in(self):
        return self.headers.get("Authorization", "").removeprefix("Bearer ") in self.news.access

    # Requests

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            content = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def serve(self):
        content = self.body()
        parts = urlsplit(self.path)
        path = [part for part in parts.path.split("/") if part]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if path == ["events"]:
            return self.events()
        with self.news.lock:
            if path[:1] == ["admin"]:
                answer = self.admin(path[1:], json.loads(content or b"{}"))
            elif self.news.overloaded_until > time.monotonic():
                wait = max(1, round(self.news.overloaded_until - time.monotonic()))
                answer = (503, b'{"error": "overloaded"}', [("Retry-After", str(wait))])
            else:
                answer = self.route(path, query, content)
        self.reply(*answer)

    do_GET = do_POST = do_PUT = do_DELETE = serve

    def route(self, path, query, content):
        news, method = self.news, self.command
        unauthorized = (401, b'{"error": "invalid_token"}', [("WWW-Authenticate", 'Bearer error="invalid_token"')])
        missing = (404, b'{"error": "not found"}', [])
        if path == ["token"] and method == "POST":
            return self.token({name: values[0] for name, values in parse_qs(content.decode()).items()})
        if path == ["articles"] and method == "GET":
            return self.page(query)
        if path == ["almanac"] and method == "GET":
            return self.conditional(news.almanac, None, START, tagged=False)
        if path == ["me"] and method == "GET":
            me = {"name": "Ana", "card": "4111-1111"}
            return (200, json.dumps(me).encode(), [("Cache-Control", "no-store")]) if self.is_signed_in() else unauthorized
        if path == ["bookmarks"] and method == "GET":
            return self.conditional(sorted(news.bookmarks), "no-cache") if self.is_signed_in() else unauthorized
        if path[:1] != ["articles"] or not path[1].isdigit() or int(path[1]) not in news.articles:
            return missing
        number, rest = int(path[1]), path[2:]
        article = news.articles[number]
        if rest == [] and method == "GET":
            public = {name: value for name, value in article.items() if name != "changed"}
            return self.conditional(public, "max-age=60", article["changed"])
        if not self.is_signed_in():
            return unauthorized
        if rest == ["bookmark"] and method in ("PUT", "DELETE"):
            (news.bookmarks.add if method == "PUT" else news.bookmarks.discard)(number)
            return 204, None, []
        if rest == ["comments"] and method == "POST":
            key = self.headers.get("Idempotency-Key")
            if not key:
                return 400, b'{"error": "Idempotency-Key is missing"}', []
            if key not in news.keys:
                comment = {"id": len(news.comments) + 1, "article_id": number, "text": json.loads(content)["text"]}
                news.comments.append(comment)
                news.keys[key] = comment
            return 201, json.dumps(news.keys[key]).encode(), []
        if rest == ["photo"] and method == "POST":
            if not self.headers.get("Content-Type", "").startswith("multipart/form-data"):
                return 415, b'{"error": "multipart/form-data is expected"}', []
            news.photos.append(len(content))
            return 201, json.dumps({"bytes": len(content)}).encode(), []
        return missing

    def page(self, query):
        news = self.news
        size, number = min(50, int(query.get("per_page", 20))), int(query.get("page", 1))
        newest = sorted(news.articles.values(), key=lambda article: -article["id"])
        items = [{name: value for name, value in article.items() if name not in ("changed", "body_text")}
                 for article in newest[(number - 1) * size:number * size]]
        status, content, fields = self.conditional(items, "max-age=60")
        if number * size < len(newest):
            fields.append(("Link", f'</articles?page={number + 1}&per_page={size}>; rel="next"'))
        return status, content, fields

    def token(self, form):
        news = self.news
        if form.get("grant_type") == "password" and form.get("password") == "news":
            return 200, json.dumps(news.grant()).encode(), []
        if form.get("grant_type") == "refresh_token" and form.get("refresh_token") in news.refresh:
            news.refresh.discard(form["refresh_token"])
            return 200, json.dumps(news.grant()).encode(), []
        return 400, b'{"error": "invalid_grant"}', []

    def events(self):
        news = self.news
        if not self.is_signed_in():
            return self.problem(401, "invalid_token")
        reader = queue.Queue()
        with news.lock:
            news.readers.append(reader)
            self.note(200, 0)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(b": connected\n\n")
            while event := reader.get():
                self.wfile.write(f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n".encode())
        except OSError:
            pass  # The client has gone.
        finally:
            with news.lock:
                if reader in news.readers:
                    news.readers.remove(reader)

    def admin(self, path, body):
        news = self.news
        if path == ["log"]:
            state = {"requests": news.log, "bookmarks": sorted(news.bookmarks), "comments": news.comments,
                     "photos": news.photos, "readers": len(news.readers)}
            return 200, json.dumps(state).encode(), []
        if path == ["touch"]:
            article = news.articles[body["id"]]
            article["title"] = body.get("title", article["title"])
            article["revision"] += 1
            article["changed"] += 60
            news.tell("article", {"id": body["id"]})
        elif path == ["publish"]:
            article = news.publish(body["title"], START + 60 * (len(news.articles) + 1))
            news.tell("published", {"id": article["id"]})
        elif path == ["expire"]:
            news.access.clear()
            if body.get("refresh"):
                news.refresh.clear()
        elif path == ["overload"]:
            news.overloaded_until = time.monotonic() + body["seconds"]
        elif path == ["drop"]:
            for reader in news.readers:
                reader.put(None)
            news.readers = []
        else:
            return 404, b'{"error": "not found"}', []
        return 200, b"{}", []


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # A client that is killed closes its connection at any point.


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, default=9100, help="0: any free port")
    arguments.add_argument("--articles", type=int, default=120)
    options = arguments.parse_args()
    Handler.news = News(options.articles)
    server = Server(("127.0.0.1", options.port), Handler)
    print(f"News on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
