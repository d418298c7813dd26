import LarderCoding
public import LarderTime

extension FlightRecorder {
    /// A stored event.
    public struct Record: Sendable, Hashable {
        /// The position among all events ever written to the file, from 1.
        public let position: UInt64
        /// The opening of the file that wrote it, from 1: a change is a restart of the process.
        public let life: UInt32
        /// The event's number within its opening. A gap means events that could not be written.
        public let sequence: UInt64
        /// The time by the monotonic clock of its process.
        public let uptime: MonotonicTime
        public let wall: WallTime
        /// The event as a JSON object that begins with `kind`. Long texts are truncated.
        public let json: String

        /// The name of the event's kind.
        public var name: String {
            // Written by the recorder and covered by its checksum.
            guard let value = try? JSONParser.parse(Array(json.utf8)) else { return "" }
            return value["kind"]?.string ?? ""
        }

        /// The session and the version of the app in which the event happened.
        package var labels: TelemetryEvent.Labels {
            // Written by the recorder and covered by its checksum.
            guard let value = try? JSONParser.parse(Array(json.utf8)) else { return .none }
            return TelemetryEvent.Labels(
                session: value["session"]?.string ?? "",
                appVersion: value["appVersion"]?.string ?? ""
            )
        }
    }
}

/// The format of a record: a head of 48 bytes, little-endian, followed by the JSON.
///
/// 0 checksum of everything after it · 8 position · 16 uptime · 24 wall time · 32 sequence · 40 life · 44 bytes of JSON
extension FlightRecorder.Record {
    static let headBytes = 48

    /// - Parameter slotBytes: the length of the result.
    static func encode(_ event: TelemetryEvent, position: UInt64, life: UInt32, slotBytes: Int) -> [UInt8] {
        let json = encode(event, maximum: slotBytes - headBytes)
        var body: [UInt8] = []
        body.reserveCapacity(slotBytes)
        body.append(number: position)
        body.append(number: event.uptime.nanoseconds)
        body.append(number: event.wall.nanosecondsSinceEpoch)
        body.append(number: event.sequence)
        body.append(number: life)
        body.append(part: json)
        body.append(contentsOf: repeatElement(0, count: slotBytes - 8 - body.count))
        var slot: [UInt8] = []
        slot.append(number: checksum(body[...]))
        return slot + body
    }

    /// The record in a slot; nil if it is incomplete.
    init?(slot: ArraySlice<UInt8>) {
        var rest = slot
        guard let sum: UInt64 = rest.takeNumber(), sum == Self.checksum(rest), let position: UInt64 = rest.takeNumber(),
            let uptime: Int64 = rest.takeNumber(), let wall: Int64 = rest.takeNumber(),
            let sequence: UInt64 = rest.takeNumber(), let life: UInt32 = rest.takeNumber(), let json = rest.takeText()
        else { return nil }
        self.init(
            position: position,
            life: life,
            sequence: sequence,
            uptime: MonotonicTime(nanoseconds: uptime),
            wall: WallTime(nanosecondsSinceEpoch: wall),
            json: json
        )
    }

    private static func checksum(_ covered: ArraySlice<UInt8>) -> UInt64 {
        ContentHash.hash64(covered.span, seed: 0x4C46_5231)
    }

    /// The event's JSON within a number of bytes, with texts truncated if needed.
    private static func encode(_ event: TelemetryEvent, maximum: Int) -> [UInt8] {
        let labels = event.labels.members
        for textMaximum in [128, 48, 16, 4] {
            let members = event.kind.members(textMaximum: textMaximum).map { ($0.name, JSONValue?.some($0.value)) }
            let json = JSONValue.members(members + labels).encoded
            if json.count <= maximum { return json }
        }
        return JSONValue.members([("kind", .string(event.kind.name))] + labels).encoded
    }
}
