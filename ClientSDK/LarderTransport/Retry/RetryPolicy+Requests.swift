import LarderHTTP
public import LarderTime

extension RetryPolicy {
    /// Whether the request is idempotent, by its method (RFC 9110 §9.2.2) or its idempotency key.
    public static func isRepeatable(_ request: TransportRequest) -> Bool {
        request.method.isIdempotent || !(request.fields[.idempotencyKey] ?? "").isEmpty
    }
}
