import Glibc
import LarderTime

@testable import LarderTLS

/// 2026-06-01T12:00:00Z.
let noon = WallTime(seconds: 1_780_315_200)

/// A client and a server in memory. Their bytes are delivered in pieces of a chosen size.
struct SessionPair {
    let client: TLSSession
    let server: TLSSession
    var clientPlain: [UInt8] = []
    var serverPlain: [UInt8] = []
    var clientError: TLSError?
    var serverError: TLSError?
    /// All bytes that the client has sent, and the server.
    var clientSent: [UInt8] = []
    var serverSent: [UInt8] = []
    var step: Int

    init(_ client: TLSClient, _ server: TLSServer, host: String = "localhost", now: WallTime = noon, step: Int = .max)
        throws
    {
        self.client = try client.session(host: host, port: 443, now: now)
        self.server = try server.session()
        self.step = step
    }

    /// An authority, and both sides with their settings.
    init(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"],
        host: String = "localhost",
        fault: CertificateFault? = nil,
        now: WallTime = noon,
        step: Int = .max,
        settings change: (inout TLSSettings) -> Void = { _ in }
    ) throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        var settings = TLSSettings()
        settings.roots = .only(Array(authority.certificate.pem.utf8))
        change(&settings)
        let identity = try authority.issue(hosts: hosts, now: noon, fault: fault)
        try self.init(TLSClient(settings), TLSServer { _ in identity }, host: host, now: now, step: step)
    }

    /// Begins the handshake and delivers everything until both sides are silent.
    mutating func shakeHands() throws {
        try client.start()
        deliver()
    }

    /// Delivers bytes in both directions until none is left.
    mutating func deliver() {
        while true {
            let toServer = client.takeOutput()
            let toClient = server.takeOutput()
            if toServer.isEmpty, toClient.isEmpty { return }
            clientSent += toServer
            serverSent += toClient
            for piece in pieces(toServer) where serverError == nil {
                do { try server.receive(piece.span, into: &serverPlain) } catch { serverError = error }
            }
            for piece in pieces(toClient) where clientError == nil {
                do { try client.receive(piece.span, into: &clientPlain) } catch { clientError = error }
            }
        }
    }

    private func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        let step = min(step, max(1, bytes.count))
        return stride(from: 0, to: bytes.count, by: step).map { Array(bytes[$0..<min(bytes.count, $0 + step)]) }
    }
}

/// Bytes in which every position differs from its neighbours.
func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

/// What the product does not ask OpenSSL.
extension TLSSession {
    private typealias ChosenProtocol =
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt32>?
        ) -> Void
    private typealias Version = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?

    private static func symbol<Function>(_ name: String, as type: Function.Type) -> Function? {
        for library in OpenSSL.candidates {
            guard let opened = unsafe dlopen(library[0], RTLD_NOW | RTLD_NOLOAD) else { continue }
            return unsafe dlsym(opened, name).map { unsafe unsafeBitCast($0, to: type) }
        }
        return nil
    }

    /// The version, for example `TLSv1.3`.
    var version: String {
        let version = unsafe Self.symbol("SSL_get_version", as: Version.self)
        return unsafe version?(handle).map { unsafe String(cString: $0) } ?? ""
    }

    /// The protocol that both sides have agreed on (ALPN, RFC 7301); nil if none was offered or chosen.
    var applicationProtocol: String? {
        var (start, count): (UnsafePointer<UInt8>?, UInt32) = (nil, 0)
        unsafe Self.symbol("SSL_get0_alpn_selected", as: ChosenProtocol.self)?(handle, &start, &count)
        guard count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }
}
