import Glibc
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Writes one line for each exchange to standard error, as text or JSON. Tokens in targets are masked; bodies and
/// `Authorization` are not logged.
package struct AccessLog: Sendable {
    package enum Format: String, Sendable, CaseIterable {
        case text
        case json
    }

    private let format: Format

    package init(_ format: Format) { self.format = format }

    func write(_ record: ExchangeRecord, at time: WallTime) {
        let line = format == .json ? json(record, time) : text(record, time)
        // Errors of the log do not stop the server.
        _ = SourceFile.write(line, STDERR_FILENO)
    }

    private func text(_ record: ExchangeRecord, _ time: WallTime) -> [UInt8] {
        let microseconds = (record.ended - record.started).nanosecondsSaturating / 1_000
        var line =
            "\(time.rfc3339()) \(record.request.peer.host) \(record.request.method) \(Secrets.masked(target: record.request.targetText))"
        line += " \(record.status.code) \(record.bytesSent) B \(microseconds) µs"
        if !record.isComplete { line += " cut off" }
        return Array((line + "\n").utf8)
    }

    private func json(_ record: ExchangeRecord, _ time: WallTime) -> [UInt8] {
        JSONValue.members([
            "time": .string(time.rfc3339()), "peer": .string(record.request.peer.host),
            "method": .string(record.request.method.rawValue),
            "target": .string(Secrets.masked(target: record.request.targetText)),
            "status": .integer(Int64(record.status.code)), "bytesSent": .integer(Int64(record.bytesSent)),
            "durationMicroseconds": .integer((record.ended - record.started).nanosecondsSaturating / 1_000),
            "connection": .integer(Int64(clamping: record.request.connection)),
            "exchange": .integer(Int64(record.request.exchangeIndex)), "complete": .bool(record.isComplete),
        ]).encoded + [0x0A]
    }
}
