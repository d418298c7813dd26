import LarderHTTP
package import LarderTime

/// The `Date` field line, updated once a second.
package struct DateField {
    private(set) var second = Int64.min
    /// `Date: …` with its CRLF.
    private(set) var line: [UInt8] = []

    mutating func update(_ now: WallTime) {
        guard now.seconds != second else { return }
        second = now.seconds
        line = Self.line(at: now)
    }

    package static func line(at time: WallTime) -> [UInt8] {
        var line = Array("Date: ".utf8)
        HTTPDate.appendIMF(time, to: &line)
        return line + "\r\n".utf8
    }
}
