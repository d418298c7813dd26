import Glibc

/// The authorities that the system trusts, read once for the process: OpenSSL would read their directory in each handshake, on the thread of
/// the sockets.
enum SystemRoots {
    /// Where OpenSSL looks for them, by `SSL_CERT_FILE` and `SSL_CERT_DIR` or its own standard; otherwise the first bundle that other
    /// systems have. Damaged files are left out. The first call reads files.
    static let certificates: [Certificate] = {
        guard let library = try? OpenSSL.required() else { return [] }
        let file = unsafe value("SSL_CERT_FILE") ?? text(library.defaultRootsFile())
        let folders = unsafe value("SSL_CERT_DIR") ?? text(library.defaultRootsFolder())
        let isConfigured = value("SSL_CERT_FILE") != nil || value("SSL_CERT_DIR") != nil
        var found = read(file, library)
        // Where a bundle has all of them, the directory has the same.
        if found.isEmpty || isConfigured {
            found += folders.split(separator: ":").flatMap { readFolder(String($0), library) }
        }
        guard found.isEmpty, !isConfigured else { return found }
        return bundles.lazy.map { read($0, library) }.first { !$0.isEmpty } ?? []
    }()

    private static let bundles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    private static func value(_ variable: String) -> String? {
        unsafe getenv(variable).map { unsafe String(cString: $0) }
    }

    private static func text(_ raw: UnsafePointer<CChar>?) -> String {
        unsafe raw.map { unsafe String(cString: $0) } ?? ""
    }

    /// The certificates of a file; none if it is not there, as most of those that are tried.
    private static func read(_ path: String, _ library: OpenSSL) -> [Certificate] {
        do { return Certificate.sound(in: try readFile(path), library) } catch { return [] }
    }

    /// The files that OpenSSL would find: eight digits of a hash, a dot and a number.
    private static func readFolder(_ path: String, _ library: OpenSSL) -> [Certificate] {
        guard let stream = unsafe opendir(path) else { return [] }
        defer { _ = unsafe closedir(stream) }
        var found: [Certificate] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe String(cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].count == 8, Int(parts[1]) != nil, UInt32(parts[0], radix: 16) != nil
            else { continue }
            found += read("\(path)/\(name)", library)
        }
        return found
    }
}
