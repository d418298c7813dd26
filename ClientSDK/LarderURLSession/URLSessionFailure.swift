import Foundation
import LarderTransport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Maps Foundation's errors to `TransportError`.
enum URLSessionFailure {
    /// - Parameter requestHasLeft: whether a server has received the request; then the code is never `.unreachable` or `.untrusted`.
    static func error(_ error: any Error, requestHasLeft: Bool) -> TransportError {
        if error is CancellationError { return TransportError(.cancelled, "The request was cancelled.") }
        guard let error = error as? URLError else { return TransportError(.interrupted, "\(error)") }
        var code = code(error.code)
        if code == .unreachable || code == .untrusted, requestHasLeft { code = .interrupted }
        return TransportError(code, error.localizedDescription)
    }

    /// Only failures before a connection exists are `.unreachable`; in doubt the request counts as sent.
    private static func code(_ code: URLError.Code) -> TransportError.Code {
        switch code {
        case .cancelled, .userCancelledAuthentication: .cancelled
        case .timedOut: .timedOut
        case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet, .dataNotAllowed,
            .internationalRoamingOff, .callIsActive:
            .unreachable
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
            .untrusted
        case .badURL, .unsupportedURL: .invalidURL
        default: .interrupted
        }
    }
}
