import LarderArguments
import LarderServer
import LarderTLS
import LarderTime

/// `larder-server certificate`: prints or exports the certificate of the development authority, which clients must trust.
struct CertificateCommand {
    enum Format: String, CaseIterable {
        case pem
        case der
        case android
    }

    private var format: Format?
    private var output: String?

    static var options: CommandOptions<CertificateCommand> {
        CommandOptions([
            .init(
                "OPTIONS",
                [
                    .init("--format", "FORMAT", "pem, der, or android for a network security configuration") {
                        (command, text) throws(UsageError) in
                        guard let format = Format(rawValue: text) else {
                            let names = Format.allCases.map(\.rawValue).joined(separator: ", ")
                            throw UsageError(message: "--format requires one of \(names), not '\(text)'")
                        }
                        command.format = format
                    },
                    .init("--output", short: "-o", "FILE", "a file instead of standard output", \.output),
                ]
            )
        ])
    }

    init(_ words: [String]) throws(UsageError) {
        _ = try Self.options.parse(
            words,
            into: &self,
            orElse: CommandUsage.table.wrong("certificate").message
        )
    }

    /// The directory of the development authority.
    ///
    /// - Throws: `UsageError` if there is no home directory.
    static func directory() throws(UsageError) -> String {
        guard let directory = AuthorityDirectory.standard(environment: { Environment[$0] }) else {
            throw UsageError(message: "the development authority needs a home directory: set HOME or XDG_DATA_HOME")
        }
        return directory
    }

    func run() throws {
        let directory = AuthorityDirectory(try Self.directory())
        let certificate = try directory.authority(now: SystemWallClock().now).certificate
        guard let format = format ?? (output == nil ? nil : .pem) else {
            return Terminal.print(Self.description(certificate, directory.certificatePath))
        }
        let bytes =
            switch format {
            case .pem: Array(certificate.pem.utf8)
            case .der: certificate.der
            case .android: Array(Self.androidConfiguration.utf8)
            }
        if let output { return try SourceFile.write(bytes, to: output) }
        guard format != .der else { throw UsageError(message: "--format der is not text: add --output FILE") }
        Terminal.print(String(decoding: bytes, as: UTF8.self))
    }

    private static func description(_ certificate: Certificate, _ path: String) -> String {
        let hash = certificate.fingerprint.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
        return """
            \(certificate.subject)
            SHA-256  \(hash.joined(separator: ":"))
            until    \(certificate.validUntil.rfc3339().prefix(10))
            file     \(path)

            Trust it only on machines for tests:
              curl --cacert \(path) https://localhost:8080/healthz
              xcrun simctl keychain booted add-root-cert \(path)
              larder-server certificate --format der --output larder.cer       (Android: install it as a CA certificate)
              larder-server certificate --format android                       (res/xml/network_security_config.xml)
            """
    }

    private static let androidConfiguration = """
        <?xml version="1.0" encoding="utf-8"?>
        <!-- res/xml/network_security_config.xml; the certificate is res/raw/larder.pem (larder-server certificate --format pem). -->
        <network-security-config>
            <debug-overrides>
                <trust-anchors>
                    <certificates src="@raw/larder" />
                    <certificates src="system" />
                </trust-anchors>
            </debug-overrides>
        </network-security-config>
        """
}
