public import Foundation
public import LarderHTTP
public import LarderResources
public import LarderTransport

extension HTTPSource {
    /// How an API writes its requests and replies. The defaults fit a JSON API.
    public struct Configuration: Sendable {
        /// Decodes the content of replies. Do not change a decoder that is in use.
        public var decoder = JSONDecoder()
        /// Encodes the content of requests. Do not change an encoder that is in use.
        public var encoder: JSONEncoder = {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return encoder
        }()
        /// The `Content-Type` of encoded content.
        public var contentType = "application/json"
        /// Fields of every request, such as an API key or `Accept-Language`. A field of a single request replaces them.
        public var fields: Fields = [.accept: "application/json"]
        /// Whether the API sends content of this media type: lower case, without parameters, empty if the reply has none. Other
        /// content counts as that of a proxy or a captive portal. By default every type that contains `json`.
        public var acceptsContentType: @Sendable (_ type: String) -> Bool = { $0.contains("json") }
        /// Whether a reply to `fetch` says that the resource does not exist, so that its stored value is removed. By default a 404
        /// or 410 with an accepted content type.
        public var isGone: @Sendable (_ reply: TransportResponse, _ isAccepted: Bool) -> Bool = { reply, isAccepted in
            isAccepted && (reply.status.code == 404 || reply.status.code == 410)
        }
        /// Changes the error of a reply that is not a success, such as to read an error document of the API. The default error has the
        /// members of a problem document (RFC 9457). The status and `retryAfter` of the default error are kept.
        public var mapError: @Sendable (_ error: LarderError, _ reply: TransportResponse) -> LarderError = { error, _ in
            error
        }
        /// Corrects the fields of replies before anything is read from them, for servers whose `Cache-Control` is not meant. For example
        /// `{ fields, _ in fields.remove(.cacheControl) }` for a server that writes `no-store` by habit, so that nothing can be shown
        /// offline (`CacheEvent.notStored`).
        public var correctFields: @Sendable (_ fields: inout Fields, _ url: String) -> Void = { _, _ in }
        /// How long to wait after a reply that is not a success, by something else than `Retry-After`, such as a member of its content; nil:
        /// the reply does not say. `APIClient` holds back all its requests to the host for that time after a 429 or 503.
        public var retryAfter: @Sendable (_ reply: TransportResponse) -> Duration? = { _ in nil }
        /// How the API takes files in pieces (`APIClient.upload`).
        public var uploads = UploadProtocol.ietf
        /// The maximum size of a reply in bytes. A larger one fails with `.unexpectedReply`.
        public var replyBytesMaximum = 16 << 20

        /// The settings of a JSON API.
        public init() {}
    }
}
