/// The progress of a task.
enum TaskStatus: Int64, Sendable, CaseIterable {
    case open = 0
    case started = 1
    case done = 2

    /// The status in JSON and in `status=` filters.
    var name: String { "\(self)" }

    /// All names, for error messages.
    static let names = "`open`, `started` or `done`"

    init?(named name: some StringProtocol) {
        guard let status = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = status
    }
}
