import LarderCoding
import LarderHTTP
import LarderTransport
import TestSupport
import Testing

@testable import LarderCommand
@testable import LarderDevice

@Suite("Command: explained requests", .oneMinute)
struct ExplanationTests {
    private func exchange(_ id: String, status: Int? = 200) -> MonitoredTransport.Exchange {
        var request = TransportRequest(url: "http://test/v1/feed?limit=20")
        request.fields.set("X-Request-ID", id)
        return MonitoredTransport.Exchange(
            request: request,
            status: status,
            failure: status == nil ? "timedOut" : nil,
            duration: .milliseconds(12),
            bytesReceived: 2_048,
            bytesDecoded: nil,
            reason: "feed: stale (expired), policy cacheFirst"
        )
    }

    @Test func `requests are joined with the verdicts of their entries by the request ID`() throws {
        let journal = """
            [{"requestID": "b", "verdicts": [{"rule": "unconditionalRead", "text": "304 possible: the client held W/1",
            "wastedBytes": 1024, "wastedSeconds": 0.25}]}, {"requestID": "a"}, {"number": 3}]
            """
        let entries = try #require(JSONParser.parse(Array(journal.utf8)).array)
        let explanation = Explanation([exchange("a"), exchange("b"), exchange("c", status: nil)], entries)
        #expect(explanation.wastedBytes == 1_024 && explanation.wastedTime == .milliseconds(250))
        #expect(
            explanation.text == [
                "1  GET /v1/feed?limit=20", "   reason   feed: stale (expired), policy cacheFirst",
                "   reply    200, 2.0 KB in 12 ms", "   verdict  nothing to object to", "2  GET /v1/feed?limit=20",
                "   reason   feed: stale (expired), policy cacheFirst", "   reply    200, 2.0 KB in 12 ms",
                "   verdict  304 possible: the client held W/1 [wasted: 1.0 KB, 250 ms]", "3  GET /v1/feed?limit=20",
                "   reason   feed: stale (expired), policy cacheFirst",
                "   reply    no reply (timedOut), 2.0 KB in 12 ms",
                "   verdict  not in the server's journal", "3 requests, 6.0 KB; wasted: 1.0 KB, 250 ms.",
            ]
        )
        #expect(explanation.json["requests"]?.array?.count == 3)
    }

    @Test func `without a journal the reasons are shown, and why there are no verdicts`() {
        let explanation = Explanation([exchange("a")], nil, problem: "the server has none")
        #expect(explanation.text.count == 4)
        #expect(explanation.text.last == "1 request, 2.0 KB. No verdicts: the server has none")
        #expect(Explanation([], nil).text == ["No request was sent."])
    }
}
