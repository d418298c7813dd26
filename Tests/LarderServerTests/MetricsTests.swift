import LarderHTTP
import TestSupport
import Testing

@testable import LarderServer

@Suite("Metrics", .oneMinute)
struct MetricsTests {
    @Test func `requests are counted by what answered them and by status, and faults by action`() async throws {
        let site = try RouteSite(routes: #"{"path": "/a", "text": "x"}, {"path": "/b", "status": 404}"#)
        for target in ["/a", "/a", "/b", "/c", "/_larder/faults"] { _ = try await site.ask("GET", target) }
        _ = try await site.ask(
            "POST",
            "/_larder/faults",
            #"{"match": {"path": "/a"}, "action": {"type": "respond", "status": 503}}"#
        )
        _ = try await site.ask("GET", "/a")
        let reply = try await site.ask("GET", "/_larder/metrics")
        #expect(reply.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
        let lines = reply.text.split(separator: "\n")
        for line in [
            #"larder_requests_total{route="routes",status="200"} 2"#,
            #"larder_requests_total{route="routes",status="404"} 1"#,
            #"larder_requests_total{route="routes",status="503"} 1"#,
            #"larder_requests_total{route="demo",status="404"} 1"#,
            #"larder_requests_total{route="control",status="200"} 1"#,
            #"larder_faults_applied_total{action="respond"} 1"#, "larder_worlds 1", "larder_journal_entries 5",
            "# TYPE larder_requests_total counter",
        ] { #expect(lines.contains { $0 == line }, "\(line) is not in \(reply.text)") }
        for name in ["larder_connections_open", "process_resident_memory_bytes", "larder_journal_bytes"] {
            let value = lines.first { $0.hasPrefix(name + " ") }?.split(separator: " ").last.flatMap { Int($0) }
            #expect(value.map { $0 > 0 } ?? false, "\(name) in \(reply.text)")
        }
    }

    @Test func `a custom route of a world that the path names counts as a route`() async throws {
        let site = try RouteSite(routes: #"{"path": "/a", "text": "x"}"#)
        #expect(try await site.ask("POST", "/_larder/worlds", #"{"id": "two"}"#).status == 201)
        #expect(try await site.ask("GET", "/w/two/a").status == 200)
        let text = try await site.ask("GET", "/_larder/metrics").text
        #expect(text.contains(#"larder_requests_total{route="routes",status="200"} 1"#), "\(text)")
    }
}
