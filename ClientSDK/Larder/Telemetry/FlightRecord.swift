import LarderCoding
public import LarderTime

/// An event as the flight recorder kept it.
public struct FlightRecord: Sendable, Hashable {
    /// Its place among all events that were ever written to the file, from 1.
    public let position: UInt64
    /// Which opening of the file wrote it, from 1: a change is a restart of the process.
    public let life: UInt32
    /// The event's number in its life. A gap is events that could not be written.
    public let sequence: UInt64
    /// When it happened by the monotonic clock of its life.
    public let uptime: MonotonicTime
    /// When it happened.
    public let wall: WallTime
    /// What happened, as a JSON object that begins with `kind`. Long texts are cut.
    public let json: String

    /// What happened: a kind's name.
    public var name: String {
        // It is written by the recorder and covered by its checksum.
        guard let value = try? JSONParser.parse(Array(json.utf8)) else { return "" }
        return value["kind"]?.string ?? ""
    }

    /// One line for people: when, what.
    public var line: String { "\(wall.rfc3339()) life \(life) \(json)" }
}

/// How a record lies in the file: a head of 48 bytes, little-endian, and the JSON after it.
///
/// 0 checksum of everything after it · 8 position · 16 uptime · 24 wall time · 32 sequence · 40 life · 44 bytes of JSON
extension FlightRecord {
    static let headBytes = 48

    /// - Parameter slotBytes: how long the result is.
    static func encode(_ event: TelemetryEvent, position: UInt64, life: UInt32, slotBytes: Int) -> [UInt8] {
        let json = encode(event.kind, maximum: slotBytes - headBytes)
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

    /// The record of a slot; nil where it is not whole.
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

    /// The event's JSON in so many bytes, with shorter texts where it would be longer.
    private static func encode(_ kind: TelemetryEvent.Kind, maximum: Int) -> [UInt8] {
        for textMaximum in [128, 48, 16, 4] {
            var writer = JSONWriter()
            writer.beginObject()
            kind.write(to: &writer, textMaximum: textMaximum)
            writer.endObject()
            if writer.bytes.count <= maximum { return writer.bytes }
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("kind")
        writer.string(kind.name)
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
