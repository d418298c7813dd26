import LarderCoding
import LarderEvents

extension TelemetryEvent {
    /// One line for a log: the kind, and its members as `name=value`. Members that an app or a server may have filled with names, URLs or
    /// keys are replaced by `<private>`.
    ///
    /// ```swift
    /// for await event in client.telemetry.events() { print(event.logLine()) }
    /// ```
    ///
    /// - Parameter showsPrivate: whether private values are written, for a developer's own machine.
    public func logLine(showsPrivate: Bool = false) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        kind.write(to: &writer, textMaximum: 256)
        writer.endObject()
        guard case .object(let members)? = try? JSONParser.parse(writer.bytes) else { return kind.name }
        let words = members.members.compactMap { member -> String? in
            if member.name == "kind" { return nil }
            if !showsPrivate, Self.privateMembers.contains(member.name) { return "\(member.name)=<private>" }
            // A line stays a line.
            var value = JSONWriter()
            value.value(member.value)
            let text = member.value.string ?? String(decoding: value.bytes, as: UTF8.self)
            return "\(member.name)=" + String(text.map { $0.isNewline ? " " : $0 })
        }
        return ([kind.name] + words).joined(separator: " ")
    }

    /// Texts that do not come from the SDK alone.
    private static let privateMembers: Set<String> = ["reason", "detail", "key", "name", "store"]
}
