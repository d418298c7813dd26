import LarderTime

/// A calendar date without a time zone, such as the due date of a task.
struct TaskDate: Sendable, Hashable {
    private static let secondsPerDay: Int64 = 86_400

    /// The place of a task without a date in a list: later than every date.
    static let none = Int64.max

    /// The days since 1970-01-01.
    let days: Int64

    private init(days: Int64) { self.days = days }

    /// Parses `YYYY-MM-DD` (RFC 3339 full-date), from the year 1700 to 2250.
    init?(parsing text: some StringProtocol) {
        guard text.utf8.count == 10, let time = WallTime(rfc3339: "\(text)T00:00:00Z") else { return nil }
        self.init(on: time)
    }

    /// The date of a time in UTC.
    init(on time: WallTime) {
        let milliseconds = time.milliseconds
        let day = Self.secondsPerDay * 1_000
        days = milliseconds / day - (milliseconds % day < 0 ? 1 : 0)
    }

    func advanced(byDays count: Int) -> TaskDate { TaskDate(days: days + Int64(count)) }

    /// `YYYY-MM-DD`.
    var text: String { String(WallTime(seconds: days * Self.secondsPerDay).rfc3339().prefix(10)) }
}
