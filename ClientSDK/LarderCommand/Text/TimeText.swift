import Larder

/// Formats times and durations.
enum TimeText {
    /// A relative time: `just now`, `12 s ago`, `2 min ago`, `3 h ago`, `5 d ago`; for future times, `in 2 min`.
    static func text(from time: WallTime, to now: WallTime) -> String {
        let seconds = (now - time).nanosecondsSaturating / 1_000_000_000
        if seconds < -1 { return "in \(Freshness.Notice.rounded(.seconds(-seconds)))" }
        return seconds < 2 ? "just now" : "\(Freshness.Notice.rounded(.seconds(seconds))) ago"
    }

    /// The same for an RFC 3339 time; the text itself if it cannot be parsed.
    static func text(from time: String, to now: WallTime) -> String {
        WallTime(rfc3339: time).map { text(from: $0, to: now) } ?? time
    }

    /// A duration: `900 µs`, `3 ms`, `1.2 s`.
    static func text(_ duration: Duration) -> String {
        let microseconds = duration.nanosecondsSaturating / 1_000
        if microseconds < 1_000 { return "\(microseconds) µs" }
        if microseconds < 1_000_000 { return "\(microseconds / 1_000) ms" }
        let seconds = microseconds / 1_000_000
        return seconds < 1_000 ? "\(seconds).\(microseconds / 100_000 % 10) s" : "\(seconds) s"
    }
}

/// Formats numbers of bytes.
enum SizeText {
    /// `812 B`, `64.0 KB`, `1.5 MB`: powers of 1,024.
    static func text(_ bytes: Int64) -> String {
        var unit: UInt64 = 1 << 10
        let size = bytes.magnitude
        if size < unit { return "\(bytes) B" }
        for name in ["KB", "MB"] {
            if size < unit << 10 { return "\(bytes / Int64(unit)).\(size % unit * 10 / unit) \(name)" }
            unit <<= 10
        }
        return "\(bytes / Int64(unit)).\(size % unit * 10 / unit) GB"
    }
}
