import LarderHTTP
import LarderTime

/// The `Date` field line, updated once a second.
struct DateField {
    private(set) var second = Int64.min
    /// `Date: …` with its CRLF.
    private(set) var line: [UInt8] = []

    mutating func update(_ now: WallTime) {
        guard now.seconds != second else { return }
        second = now.seconds
        line.removeAll(keepingCapacity: true)
        line.append(contentsOf: "Date: ".utf8)
        HTTPDate.appendIMF(now, to: &line)
        line.append(contentsOf: "\r\n".utf8)
    }
}
