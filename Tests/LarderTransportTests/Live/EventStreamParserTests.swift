import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Event stream parser", .oneMinute)
struct EventStreamParserTests {
    private func parse(_ bytes: [UInt8], cuts: [Int] = []) throws -> [EventStream.Event] {
        var parser = EventStreamParser()
        var events: [EventStream.Event] = []
        var start = 0
        for cut in cuts + [bytes.count] {
            try parser.receive(Array(bytes[start..<cut]), &events)
            start = cut
        }
        return events
    }

    private func parse(_ text: String) throws -> [EventStream.Event] { try parse(Array(text.utf8)) }

    @Test func `the examples of the standard are parsed`() throws {
        #expect(try parse("data: YHOO\ndata: +2\ndata: 10\n\n") == [EventStream.Event(data: "YHOO\n+2\n10")])
        let numbered = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
        #expect(
            try parse(numbered) == [
                EventStream.Event(data: "first event", id: "1"), EventStream.Event(data: "second event"),
                EventStream.Event(data: " third event"),
            ]
        )
        // The last block is incomplete and dropped.
        #expect(
            try parse("data\n\ndata\ndata\n\ndata:") == [
                EventStream.Event(data: ""), EventStream.Event(data: "\n"),
            ]
        )
        #expect(try parse("data:test\n\ndata: test\n\n").map(\.data) == ["test", "test"])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `CR, LF and CR LF end lines, also mixed`(end: String) throws {
        let text = "event: a\(end)data: 1\(end)\(end)id: 7\(end)data: 2\(end)\(end)"
        let expected = [EventStream.Event(type: "a", data: "1"), EventStream.Event(data: "2", id: "7")]
        #expect(try parse(text) == expected)
        #expect(try parse("data: x\r\n\rdata: y\n\r\ndata: z\r\r").map(\.data) == ["x", "y", "z"])
    }

    @Test func `an event without data is skipped, but its ID is kept`() throws {
        var parser = EventStreamParser(lastEventID: "0")
        var events: [EventStream.Event] = []
        try parser.receive(Array("event: ping\nid: 5\n\n".utf8), &events)
        #expect(events.isEmpty && parser.lastEventID == "5")
        try parser.receive(Array("data: x\n\n".utf8), &events)
        #expect(events == [EventStream.Event(data: "x", id: "5")])
    }

    @Test func `an ID with NUL and an invalid retry are ignored`() throws {
        var parser = EventStreamParser(lastEventID: "old")
        var events: [EventStream.Event] = []
        try parser.receive(Array("id: a\0b\nretry: 1500\nretry: 2s\nretry: \nretry: -1\n\n".utf8), &events)
        #expect(parser.lastEventID == "old" && parser.retry == .milliseconds(1_500))
        try parser.receive(Array("retry: 99999999999999999999\n\n".utf8), &events)
        #expect(parser.retry == .milliseconds(1_500))
    }

    @Test func `one byte order mark is skipped, and a partial one is not`() throws {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let line = Array("data: x\n\n".utf8)
        for cuts in [[], [1], [2], [3], [1, 2, 3]] {
            #expect(try parse(mark + line, cuts: cuts) == [EventStream.Event(data: "x")])
            // A second mark is part of the field's name, which is unknown.
            #expect(try parse(mark + mark + line, cuts: cuts) == [])
            #expect(try parse([0xEF, 0xBB] + line + line, cuts: cuts) == [EventStream.Event(data: "x")])
        }
    }

    @Test func `an event above the limit is an error, in one line and in many`() {
        for text in [String(repeating: "x", count: 101), String(repeating: "data: 12345\n", count: 30)] {
            var parser = EventStreamParser(eventBytesMaximum: 100)
            var events: [EventStream.Event] = []
            #expect(throws: EventStreamParser.TooLarge.self) { try parser.receive(Array(text.utf8), &events) }
        }
    }

    @Test func `any split of the bytes gives the same events`() throws {
        for seed in UInt64(1)...300 {
            var random = SeededGenerator(seed: seed)
            var bytes: [UInt8] = random.uniform(in: 0..<3) == 0 ? [0xEF, 0xBB, 0xBF] : []
            let ends = ["\n", "\r", "\r\n"]
            let lines = ["data: a", "data:€😀", "data", ": c", "id: 4", "id", "event: e", "retry: 9", "odd", "", "", ""]
            for _ in 0..<random.uniform(in: 1..<40) {
                bytes += Array((lines[random.uniform(in: 0..<lines.count)] + ends[random.uniform(in: 0..<3)]).utf8)
            }
            let whole = try parse(bytes)
            let cuts = (0..<random.uniform(in: 0..<30)).map { _ in random.uniform(in: 0..<(bytes.count + 1)) }.sorted()
            #expect(try parse(bytes, cuts: cuts) == whole, "seed \(seed)")
            #expect(try parse(bytes, cuts: Array(1..<bytes.count)) == whole, "seed \(seed)")
        }
    }
}
