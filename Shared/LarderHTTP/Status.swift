/// A status code (RFC 9110 §15).
public struct Status: Sendable, Hashable, CustomStringConvertible {
    /// The code, from 100 to 999.
    public let code: Int

    /// Makes a status; a code outside of 100…999 becomes 500.
    public init(code: Int) { self.code = (100...999).contains(code) ? code : 500 }

    public var description: String { "\(code)" }

    /// Whether a response with this status has no content (RFC 9110 §6.4.1).
    public var hasNoContent: Bool { code < 200 || code == 204 || code == 304 }

    /// 101, the protocol changes.
    public static let switchingProtocols = Status(code: 101)
    public static let ok = Status(code: 200)
    /// 201, something new exists.
    public static let created = Status(code: 201)
    /// 202, it will be done.
    public static let accepted = Status(code: 202)
    /// 204, success with nothing to say.
    public static let noContent = Status(code: 204)
    /// 206, a part as asked for.
    public static let partialContent = Status(code: 206)
    /// 304, what the client has is current.
    public static let notModified = Status(code: 304)
    public static let badRequest = Status(code: 400)
    /// 401, sign in first.
    public static let unauthorized = Status(code: 401)
    public static let forbidden = Status(code: 403)
    public static let notFound = Status(code: 404)
    public static let methodNotAllowed = Status(code: 405)
    public static let notAcceptable = Status(code: 406)
    /// 408, the request took too long to arrive.
    public static let requestTimeout = Status(code: 408)
    public static let conflict = Status(code: 409)
    /// 410, gone for good.
    public static let gone = Status(code: 410)
    public static let lengthRequired = Status(code: 411)
    /// 412, a condition does not hold.
    public static let preconditionFailed = Status(code: 412)
    public static let contentTooLarge = Status(code: 413)
    public static let uriTooLong = Status(code: 414)
    public static let unsupportedMediaType = Status(code: 415)
    public static let rangeNotSatisfiable = Status(code: 416)
    public static let expectationFailed = Status(code: 417)
    /// 422, well-formed and wrong.
    public static let unprocessableContent = Status(code: 422)
    public static let upgradeRequired = Status(code: 426)
    /// 428 (RFC 6585), state which version is meant.
    public static let preconditionRequired = Status(code: 428)
    /// 429 (RFC 6585).
    public static let tooManyRequests = Status(code: 429)
    /// 431 (RFC 6585).
    public static let requestHeaderFieldsTooLarge = Status(code: 431)
    public static let internalServerError = Status(code: 500)
    public static let notImplemented = Status(code: 501)
    /// 502, a server behind this one gave no usable reply.
    public static let badGateway = Status(code: 502)
    public static let serviceUnavailable = Status(code: 503)
    /// 504, a server behind this one did not answer in time.
    public static let gatewayTimeout = Status(code: 504)
    public static let httpVersionNotSupported = Status(code: 505)

    /// The reason phrase; empty for unknown codes.
    public var reasonPhrase: String {
        switch code {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 206: "Partial Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}
