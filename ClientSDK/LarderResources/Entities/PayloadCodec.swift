import Foundation

/// Encodes values to bytes and decodes them. Safe from any thread.
public struct PayloadCodec<Value: Sendable>: Sendable {
    public let encode: @Sendable (Value) throws -> [UInt8]
    /// Decodes a value; throws if the bytes are not one.
    public let decode: @Sendable ([UInt8]) throws -> Value
    /// Whether the bytes are JSON text.
    private(set) var isJSON = false

    /// Creates a codec.
    public init(
        encode: @escaping @Sendable (Value) throws -> [UInt8],
        decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        self.encode = encode
        self.decode = decode
    }
}

extension PayloadCodec where Value: Codable {
    /// JSON by Foundation's encoder and decoder.
    public static var json: PayloadCodec {
        var codec = PayloadCodec(
            encode: { Array(try JSONEncoder().encode($0)) },
            decode: { try JSONDecoder().decode(Value.self, from: Data($0)) }
        )
        codec.isJSON = true
        return codec
    }
}
