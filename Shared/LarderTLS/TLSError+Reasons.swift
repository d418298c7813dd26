import LarderTime

/// The explanations of what OpenSSL reports.
extension TLSError {
    /// A certificate that was rejected with a code of X509_V_ERR.
    init(rejecting certificate: Certificate?, _ code: Int32, _ text: String, _ whose: String, _ host: String) {
        let subject =
            certificate.map { $0.subject.isEmpty ? "a certificate without subject" : "'\($0.subject)'" }
            ?? "no certificate"
        switch code {
        case Verdict.expired:
            let since = certificate.map { " was valid until \($0.validUntil.rfc3339())" } ?? ""
            self.init(
                .certificateExpired,
                "\(whose) has expired: \(subject)\(since). Renew it, or correct the clock of this machine."
            )
        case Verdict.notYetValid:
            let from = certificate.map { " is valid from \($0.validFrom.rfc3339())" } ?? ""
            self.init(
                .certificateNotYetValid,
                "\(whose) is not valid yet: \(subject)\(from). Correct the clock of this machine, or replace the certificate."
            )
        case Verdict.hostMismatch, Verdict.addressMismatch:
            let names = certificate?.hosts ?? []
            let others = names.isEmpty ? "no host at all" : names.prefix(8).joined(separator: ", ")
            self.init(
                .certificateForAnotherHost,
                "\(whose) is for \(others): \(subject). Use a URL with one of these names, or add '\(host)' to the certificate."
            )
        case Verdict.selfSigned:
            self.init(
                .certificateFromUnknownAuthority,
                "\(whose) is self-signed: \(subject). If it is your server's, make it one of the trusted roots, or install it on this machine."
            )
        case Verdict.selfSignedInChain, Verdict.noIssuer, Verdict.noLocalIssuer, Verdict.unverifiable:
            let issuer = certificate.map { " signed by '\($0.issuer)'" } ?? ""
            self.init(
                .certificateFromUnknownAuthority,
                "\(whose) comes from an authority that is not trusted: \(subject)\(issuer). Trust that authority with roots, or let the "
                    + "server send its intermediate certificates."
            )
        case Verdict.wrongPurpose:
            self.init(
                .certificateInvalid,
                "\(whose) has another purpose: \(subject) (\(text)). Use one with extended key usage serverAuth, or clientAuth for clients."
            )
        default:
            self.init(.certificateInvalid, "\(whose) is not accepted: \(subject) (\(text)). Replace the certificate.")
        }
    }

    /// An alert of the peer, in the words of OpenSSL: "tlsv1 alert unknown ca".
    init(alert reason: String, isClient: Bool) {
        let alert = reason.firstRange(of: " alert ").map { String(reason[$0.upperBound...]) } ?? reason
        let remedy: String
        switch alert {
        case "unknown ca", "certificate unknown", "bad certificate", "certificate expired", "unsupported certificate":
            remedy =
                isClient
                ? "It does not accept this client's certificate: check TLSSettings.identity."
                : "It does not trust this server's certificate: install its authority on the client."
        case "certificate required", "handshake failure":
            remedy =
                isClient
                ? "If it asks for a client certificate, set TLSSettings.identity."
                : "Check the versions that it offers."
        case "unrecognized name": remedy = "It has no certificate for the host of the URL."
        case "protocol version": remedy = "It does not speak the offered versions, TLS 1.2 and 1.3."
        case "no application protocol": remedy = "It does not speak HTTP/1.1."
        default: remedy = "Look at the peer's log."
        }
        self.init(.rejectedByPeer, "The peer ended the TLS session with the alert '\(alert)'. \(remedy)")
    }

    /// A handshake that failed on this side.
    init(handshake reason: String, isClient: Bool) {
        let other = isClient ? "server" : "client"
        switch reason {
        case "unsupported protocol", "wrong ssl version", "tlsv1 alert protocol version":
            self.init(
                .handshakeFailed,
                "The \(other) offers no version of TLS that is accepted here (\(reason)): 1.2 or 1.3 is needed."
            )
        case "no shared cipher":
            self.init(
                .handshakeFailed,
                "The \(other) has no cipher in common with this side, or no certificate fits its offer."
            )
        default:
            self.init(
                .handshakeFailed,
                "The TLS handshake with the \(other) failed: \(reason). Check that it speaks TLS 1.2 or 1.3."
            )
        }
    }

    /// Results of verification (`X509_V_ERR_…`).
    private enum Verdict {
        static let noIssuer: Int32 = 2
        static let notYetValid: Int32 = 9
        static let expired: Int32 = 10
        static let selfSigned: Int32 = 18
        static let selfSignedInChain: Int32 = 19
        static let noLocalIssuer: Int32 = 20
        static let unverifiable: Int32 = 21
        static let wrongPurpose: Int32 = 26
        static let hostMismatch: Int32 = 62
        static let addressMismatch: Int32 = 64
    }
}
