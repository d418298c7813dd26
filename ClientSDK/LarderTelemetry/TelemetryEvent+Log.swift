package import LarderCoding
import LarderEvents

extension TelemetryEvent {
    /// How severe an event is, in the words of system logs.
    public enum Severity: String, Sendable, Hashable, CaseIterable {
        case debug, info, notice, warning
    }

    /// The severity of the event: a store that was replaced and a shortage of memory are warnings; changes of levels and rejected operations
    /// are notices.
    public var severity: Severity {
        switch kind {
        case .storeRecovered, .memoryWarning: .warning
        case .memoryLevel, .networkLevel, .outbox(.rejected, _), .outbox(.inDoubt, _), .gateRejected, .note: .notice
        case .request, .sync, .flagChanged, .memoryReaction: .info
        default: .debug
        }
    }

    /// One line: the kind, and its members as `name=value`.
    func logLine(showsPrivate: Bool) -> String {
        Self.line(kind.members(textMaximum: 256, hidesPrivate: !showsPrivate))
    }

    /// One line of the members of an event: the kind, and the others as `name=value`.
    package static func line(_ members: [(name: String, value: JSONValue)]) -> String {
        let words = members.map { name, value in
            let text = value.string ?? String(decoding: value.encoded, as: UTF8.self)
            // A line stays a line.
            return (name == "kind" ? "" : "\(name)=") + String(text.map { $0.isNewline ? " " : $0 })
        }
        return words.joined(separator: " ")
    }
}

extension Telemetry {
    /// Writes the events from now on to the log of an app, one line each: `tierHit tier=memory feature=feed bytes=7`.
    ///
    /// Texts that an app or a server may have filled with names, URLs or keys are written as `<private>`: the details of notes, the keys of
    /// flags and the paths of stores. Names of features and notes, and reasons and causes, are written, so they must not contain them.
    ///
    /// ```swift
    /// client.telemetry.log { severity, line in print("larder", severity.rawValue, line) }
    /// ```
    ///
    /// - Parameters:
    ///   - showsPrivate: whether private texts are written too, for a developer's own machine.
    ///   - write: called for one event after the other, in their order. An event is left out if a thousand others wait for it.
    /// - Returns: the task that writes. It ends with the telemetry. When it is cancelled, it writes the events so far and ends.
    @discardableResult
    public func log(
        showsPrivate: Bool = false,
        to write: @escaping @Sendable (TelemetryEvent.Severity, String) -> Void
    ) -> Task<Void, Never> {
        let events = events()
        return Task {
            for await event in events { write(event.severity, event.logLine(showsPrivate: showsPrivate)) }
            for event in events.takeAvailable() { write(event.severity, event.logLine(showsPrivate: showsPrivate)) }
        }
    }
}
