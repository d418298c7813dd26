import Foundation

/// How values become bytes and bytes values. Safe from any thread.
public struct Codec<Value: Sendable>: Sendable {
    /// Gives the bytes of a value.
    public let encode: @Sendable (Value) throws -> [UInt8]
    /// Gives the value of bytes; throws where they are not one.
    public let decode: @Sendable ([UInt8]) throws -> Value

    /// A codec of both directions.
    public init(
        encode: @escaping @Sendable (Value) throws -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        self.encode = encode
        self.decode = decode
    }
}

extension Codec where Value: Codable {
    /// JSON as Foundation writes and reads it.
    public static var json: Codec {
        Codec(
            encode: { Array(try JSONEncoder().encode($0)) },
            decode: { try JSONDecoder().decode(Value.self, from: Data($0)) }
        )
    }
}
