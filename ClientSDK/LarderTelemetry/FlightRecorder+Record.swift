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
        var bytes: [UInt8] = []
        bytes.reserveCapacity(slotBytes)
        bytes.append(little: UInt64(0))
        bytes.append(little: position)
        bytes.append(little: UInt64(bitPattern: event.uptime.nanoseconds))
        bytes.append(little: UInt64(bitPattern: event.wall.nanosecondsSinceEpoch))
        bytes.append(little: event.sequence)
        bytes.append(little: life)
        bytes.append(little: UInt32(json.count))
        bytes.append(contentsOf: json)
        bytes.append(contentsOf: repeatElement(0, count: slotBytes - bytes.count))
        let sum = checksum(bytes[...])
        for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: sum >> UInt64(8 * index)) }
        return bytes
    }

    /// The record in a slot; nil if it is incomplete.
    init?(slot: ArraySlice<UInt8>) {
        guard slot.count >= Self.headBytes, slot.little(at: 0) == Self.checksum(slot) else { return nil }
        let lifeAndLength = slot.little(at: 40)
        let count = Int(lifeAndLength >> 32)
        guard count <= slot.count - Self.headBytes else { return nil }
        position = slot.little(at: 8)
        uptime = MonotonicTime(nanoseconds: Int64(bitPattern: slot.little(at: 16)))
        wall = WallTime(nanosecondsSinceEpoch: Int64(bitPattern: slot.little(at: 24)))
        sequence = slot.little(at: 32)
        life = UInt32(truncatingIfNeeded: lifeAndLength)
        let start = slot.startIndex + Self.headBytes
        json = String(decoding: slot[start..<start + count], as: UTF8.self)
    }

    private static func checksum(_ slot: ArraySlice<UInt8>) -> UInt64 {
        let covered = slot.dropFirst(8)
        return ContentHash.hash64(covered.span, seed: 0x4C46_5231)
    }

    /// The event's JSON within a number of bytes, with texts truncated if needed.
    private static func encode(_ event: TelemetryEvent, maximum: Int) -> [UInt8] {
        for textMaximum in [128, 48, 16, 4] {
            var writer = JSONWriter()
            writer.beginObject()
            event.kind.write(to: &writer, textMaximum: textMaximum)
            event.labels.write(to: &writer)
            writer.endObject()
            if writer.bytes.count <= maximum { return writer.bytes }
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("kind")
        writer.string(event.kind.name)
        event.labels.write(to: &writer)
        writer.endObject()
        return writer.bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(little value: some FixedWidthInteger & UnsignedInteger) {
        for index in 0..<(value.bitWidth / 8) { append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
}

extension ArraySlice<UInt8> {
    fileprivate func little(at offset: Int) -> UInt64 {
        (0..<8).reduce(0) { $0 | UInt64(self[startIndex + offset + $1]) << UInt64(8 * $1) }
    }
}
