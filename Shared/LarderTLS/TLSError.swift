public import LarderTime

/// Why a TLS connection was not made or has ended, or why a certificate or key cannot be used.
public struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<TLSError>
    /// What is wrong with which certificate or peer, and what to do.
    public let description: String

    /// Creates an error.
    public init(_ code: ErrorCode<TLSError>, _ description: String) {
        self.code = code
        self.description = description
    }

    /// Whether the peer's certificate was rejected here.
    public var isAboutCertificate: Bool { Self.certificateCodes.contains(code) }

    private static let certificateCodes: Set<ErrorCode<TLSError>> = [
        .certificateExpired, .certificateNotYetValid, .certificateForAnotherHost, .certificateFromUnknownAuthority,
        .certificateInvalid, .certificateNotPinned,
    ]
}

extension ErrorCode where Scope == TLSError {
    /// The system has no usable OpenSSL.
    public static var unavailable: Self { Self(rawValue: "unavailable") }
    /// A certificate, key or setting of this side cannot be used.
    public static var invalidSettings: Self { Self(rawValue: "invalidSettings") }
    /// The peer's certificate has expired.
    public static var certificateExpired: Self { Self(rawValue: "certificateExpired") }
    /// The peer's certificate is not valid yet.
    public static var certificateNotYetValid: Self { Self(rawValue: "certificateNotYetValid") }
    /// The peer's certificate is for other hosts.
    public static var certificateForAnotherHost: Self { Self(rawValue: "certificateForAnotherHost") }
    /// The authority that signed the peer's certificate is not trusted, or the chain is incomplete.
    public static var certificateFromUnknownAuthority: Self { Self(rawValue: "certificateFromUnknownAuthority") }
    /// The peer's certificate has a wrong signature or purpose, is too weak, was revoked, or is missing.
    public static var certificateInvalid: Self { Self(rawValue: "certificateInvalid") }
    /// None of the certificates of the peer has a pinned public key.
    public static var certificateNotPinned: Self { Self(rawValue: "certificateNotPinned") }
    /// The peer does not speak TLS.
    public static var notTLS: Self { Self(rawValue: "notTLS") }
    /// The peer has rejected the handshake or the connection with an alert.
    public static var rejectedByPeer: Self { Self(rawValue: "rejectedByPeer") }
    /// The two sides have no version, cipher or protocol in common, or the handshake is malformed.
    public static var handshakeFailed: Self { Self(rawValue: "handshakeFailed") }
    /// A record is malformed, was damaged on the way, or is larger than the protocol allows.
    public static var damaged: Self { Self(rawValue: "damaged") }
    /// The connection ended without the peer's `close_notify` alert: data may be missing at its end (RFC 8446 §6.1).
    public static var truncated: Self { Self(rawValue: "truncated") }
}
